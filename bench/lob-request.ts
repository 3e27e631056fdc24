// The request that a benchmark makes, from its parts to the target of an HTTP request.

import { BENCH_DATE } from './bench-lake.ts'

export interface LobRequest {
  readonly series?: string
  readonly market?: string
  readonly intervalS: number
  readonly levels?: number
  readonly hour?: number
  readonly format?: 'json' | 'ndjson' | 'csv' | 'parquet'
}

/** Path and query of a request for one date. */
export function lobTarget(request: LobRequest): string {
  const { series, market, intervalS, levels = 10, hour, format = 'ndjson' } = request
  const query = new URLSearchParams({
    date: BENCH_DATE,
    interval: `${intervalS}`,
    levels: `${levels}`,
    format,
  })
  if (series !== undefined) query.set('series', series)
  if (market !== undefined) query.set('market', market)
  if (hour !== undefined) query.set('hour', `${hour}`)
  return `/api/v1/lob?${query.toString()}`
}
