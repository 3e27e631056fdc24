// Builds the target of an HTTP request from the parts of a benchmark's request.

import { Bookcast } from '../clients/typescript/bookcast.ts'
import { BENCH_DATE } from './bench-lake.ts'

/** Only its request targets are used. */
const BOOKCAST = new Bookcast('http://localhost')

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
  const parameters = { series, market, date: BENCH_DATE, interval: intervalS, levels, hour, format }
  const { pathname, search } = new URL(BOOKCAST.lob(parameters).url())
  return pathname + search
}
