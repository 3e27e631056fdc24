// One series or market in the catalogue's memory, and its JSON (contract.md 22 and 23, members in that order). Series are
// few and requested often, so the whole reply is kept ready. Markets are small, and there may be hundreds of thousands, so
// their JSON is made for each request.

import { type Validator, validatorHeaders, type WholeReply } from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'

/** A series in the relational store; instants are ms since the epoch. */
export interface SeriesRow {
  readonly ticker: string
  readonly measure_type: string
  readonly title: string
  readonly station_code: string | null
  readonly category: string
  readonly frequency: string
  readonly tags: readonly string[]
  readonly active: boolean
  readonly last_seen_at: number
}

export interface MarketRow {
  readonly ticker: string
  readonly event_ticker: string
  readonly series_ticker: string
  /** Null means the station of its series. */
  readonly station_code: string | null
  readonly status: string
  readonly result: string
  readonly close_time: number
}

export type SeriesEntry = ReturnType<typeof seriesEntry>

/** An instant as RFC 3339: whole seconds without a fraction, others with milliseconds. */
function rfc3339(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}

export function seriesEntry(row: SeriesRow, cacheControl: string) {
  const json = JSON.stringify({
    ticker: row.ticker,
    measure_type: row.measure_type,
    title: row.title,
    station_code: row.station_code,
    category: row.category,
    frequency: row.frequency,
    tags: row.tags,
    active: row.active,
    // Always with milliseconds, as the contract requires.
    last_seen_at: new Date(row.last_seen_at).toISOString(),
  })
  return {
    ticker: row.ticker,
    station: row.station_code,
    isActive: row.active,
    json,
    /** The answer to a request for this series alone. */
    reply: catalogueReply(json, 1, { etag: strongEtag(json), cacheControl }),
  }
}

export function marketJson(row: MarketRow): string {
  return JSON.stringify({
    ticker: row.ticker,
    event_ticker: row.event_ticker,
    series_ticker: row.series_ticker,
    status: row.status,
    result: row.result,
    close_time: rfc3339(row.close_time),
  })
}

/** A JSON answer of `rows` records; without a validator it cannot be revalidated. */
export function catalogueReply(json: string, rows: number, validator: Validator | undefined): WholeReply {
  return {
    status: 200,
    headers: {
      'Content-Type': 'application/json',
      ...(validator === undefined ? {} : validatorHeaders(validator)),
    },
    body: Buffer.from(json),
    rows,
  }
}
