// Liveness for orchestrators: the process answers, and nothing else is asked. Whether the data is good is what /health
// is for.

import { defineEndpoint, jsonReply } from '../http/endpoint.ts'

export const livezEndpoint = defineEndpoint({
  path: '/livez',
  summary: 'Whether the process answers at all.',
  parameters: [],
  access: 'probe',
  handle: () => jsonReply({ status: 'ok' }),
})
