// Liveness for orchestrators: the process answers, and nothing else is asked. Whether the data is good is what /health
// is for.

import { defineEndpoint, jsonReply } from '../http/endpoint.ts'
import { objectSchema } from '../http/documentation.ts'

export const livezEndpoint = defineEndpoint({
  path: '/livez',
  summary: 'Whether the process answers at all.',
  parameters: [],
  access: 'probe',
  documentation: {
    tag: 'Service',
    contentTypes: ['application/json'],
    schema: objectSchema({ status: { type: 'string', enum: ['ok'] } }),
    examples: [{ title: 'Liveness', values: {} }],
    exampleRecord: { status: 'ok' },
  },
  handle: () => jsonReply({ status: 'ok' }),
})
