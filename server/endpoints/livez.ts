// Liveness for orchestrators: the process responds. Nothing else is checked; /health reports the state of the data.

import { defineEndpoint, jsonReply } from '../http/endpoint.ts'
import { objectSchema } from '../http/documentation.ts'

export const livezEndpoint = defineEndpoint({
  path: '/livez',
  summary: 'Whether the process answers at all.',
  parameters: [],
  access: 'probe',
  documentation: {
    tag: 'Service',
    schema: objectSchema({ status: { type: 'string', enum: ['ok'] } }),
    examples: [{ title: 'Liveness', values: {} }],
    exampleRecord: { status: 'ok' },
  },
  handle: () => jsonReply({ status: 'ok' }),
})
