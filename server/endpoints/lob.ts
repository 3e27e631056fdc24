// GET /api/v1/lob: order-book snapshots, rebuilt by a worker while they are sent. The worker plans, checks and encodes;
// here parameters become its query, and its head becomes the headers of the answer.

import type { LobFormat, LobQuery } from '../../shared/lob-task.ts'
import { defineEndpoint, type Endpoint, type ReplyHeaders } from '../http/endpoint.ts'
import type { LobPool } from '../lob/lob-pool.ts'
import { LOB_DOCUMENTATION } from './lob-documentation.ts'
import { LOB_PARAMETERS, lobQueryOf, lobRule } from './lob-parameters.ts'

const CONTENT_TYPES: Readonly<Record<LobFormat, string>> = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv',
  parquet: 'application/vnd.apache.parquet',
}

/** `lob_KXHIGHNY_2026-07-01_60s.csv`; a range has both its dates, an hour `_h05`. */
function fileName(query: LobQuery): string {
  const subject = (query.market ?? query.series ?? '').replaceAll(':', '_')
  const first = query.dates[0]
  const last = query.dates.at(-1)
  const dates = first === last ? first : `${first}_${last}`
  const hour = query.hour === null ? '' : `_h${String(query.hour).padStart(2, '0')}`
  return `lob_${subject}_${dates}${hour}_${query.intervalS}s.${query.format}`
}

function replyHeaders(query: LobQuery, missingDates: readonly string[]): ReplyHeaders {
  const isFile = query.format === 'csv' || query.format === 'parquet'
  return {
    'Content-Type': CONTENT_TYPES[query.format],
    ...(isFile ? { 'Content-Disposition': `attachment; filename="${fileName(query)}"` } : {}),
    ...(missingDates.length > 0 ? { 'Missing-Dates': missingDates.join(',') } : {}),
  }
}

export function lobEndpoint(pool: LobPool): Endpoint {
  return defineEndpoint({
    path: '/api/v1/lob',
    summary: 'Order-book snapshots at a regular interval, rebuilt from recorded deltas.',
    parameters: LOB_PARAMETERS,
    rule: lobRule,
    documentation: LOB_DOCUMENTATION,
    async handle(values, { headOnly, signal }) {
      const query = lobQueryOf(values)
      const stream = await pool.open(query, { headOnly, signal })
      return { status: 200, headers: replyHeaders(query, stream.head.missingDates), stream }
    },
  })
}
