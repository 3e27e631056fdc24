// /health (contract.md 24) reports the state of the service to people and monitors. /readyz tells an orchestrator whether to
// send requests to this server. Neither needs a key.

import { ApiError } from '../../shared/errors.ts'
import type { HealthReport } from '../health/health-monitor.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import { type JsonSchema, objectSchema } from '../http/documentation.ts'

const HEALTH_SCHEMA: JsonSchema = {
  type: 'object',
  properties: {
    status: { type: 'string', enum: ['ok', 'degraded'], description: 'ok if everything below is ok.' },
    embedded_db: { type: 'string', enum: ['ok', 'error'], description: 'The embedded analytical database.' },
    hosted_db: {
      type: 'string',
      enum: ['ok', 'error', 'off'],
      description: 'The relational database; off where the server runs without one.',
    },
    sync: objectSchema(
      {
        last_sync: { type: ['string', 'null'], format: 'date-time' },
        file_count: { type: 'integer', description: 'Parquet files in the lake.' },
        is_stale: { type: 'boolean', description: 'Whether it was more than two hours ago.' },
      },
      'The last synchronization of the lake; without object storage, the last look at its directory.',
    ),
    trades: objectSchema(
      {
        minutes: { type: 'integer', description: 'Market minutes with a candle that were compared.' },
        proven: {
          type: 'integer',
          description: "Minutes whose trades have the candle's volume and last price.",
        },
        share: { type: 'number', minimum: 0, maximum: 1 },
      },
      'How many of the trades are proven complete; only after `bookcast verify --trades`.',
    ),
    samples: objectSchema(
      {
        files: { type: 'integer', description: 'Order-book files of the lake that are samples.' },
        records: { type: 'boolean', description: 'Whether the relational store holds the sample records.' },
      },
      'Present only if the server serves sample data, which is invented.',
    ),
  },
  required: ['status', 'embedded_db', 'hosted_db', 'sync'],
  additionalProperties: false,
}

export function healthEndpoint(report: () => Promise<HealthReport>): Endpoint {
  return defineEndpoint({
    path: '/health',
    summary: 'State of the stores and the lake. Always 200 while the process answers.',
    parameters: [],
    access: 'probe',
    documentation: {
      tag: 'Service',
      schema: HEALTH_SCHEMA,
      examples: [{ title: 'State of the service', values: {} }],
      exampleRecord: {
        status: 'ok',
        embedded_db: 'ok',
        hosted_db: 'ok',
        sync: { last_sync: '2026-07-03T12:00:00.000Z', file_count: 12, is_stale: false },
      },
    },
    async handle() {
      const reply = jsonReply(await report())
      return { ...reply, headers: { ...reply.headers, 'Cache-Control': 'no-store' } }
    },
  })
}

/** @param isReady whether the catalogue has been read once; after that the server can always answer from memory */
export function readyzEndpoint(isReady: () => boolean): Endpoint {
  return defineEndpoint({
    path: '/readyz',
    summary:
      'Whether the server is ready for requests: 200 once the catalogue has been read, 503 before and while stopping.',
    parameters: [],
    access: 'probe',
    documentation: {
      tag: 'Service',
      schema: objectSchema({ status: { type: 'string', enum: ['ready'] } }),
      errors: ['not_ready'],
      examples: [{ title: 'Readiness', values: {} }],
      exampleRecord: { status: 'ready' },
    },
    handle() {
      if (!isReady()) throw new ApiError('not_ready', 'The catalogue has not been read yet.')
      return jsonReply({ status: 'ready' })
    },
  })
}
