// The series and UTC dates of the lake that have order books, for the explorer's calendar. Only directories are listed; no file is
// opened. The list is reused for some seconds.

import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays } from '../../shared/utc-date.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import { seriesDates } from '../lake/series-dates.ts'

const LISTED_FOR_MS = 5_000
/** A lake has some dozens; this keeps the list a small answer. */
const SERIES_MAX = 1_000

/** The recorded dates of one series, as spans of consecutive days. */
export interface RecordedSeries {
  readonly source: LobSource
  readonly series: string
  /** First and last date of each span, ascending. */
  readonly spans: readonly (readonly [first: string, last: string])[]
}

/** Ascending dates, grouped into spans of consecutive days. */
export function spansOf(dates: readonly string[]): [string, string][] {
  const spans: [string, string][] = []
  for (const date of dates) {
    const last = spans.at(-1)
    if (last !== undefined && addDays(last[1], 1) === date) last[1] = date
    else spans.push([date, date])
  }
  return spans
}

/** Every series of the lake that has at least one date, by source and name. */
export async function recordedSeries(lake: string): Promise<RecordedSeries[]> {
  const found: RecordedSeries[] = []
  for await (const { source, series, dates } of seriesDates(lake)) {
    found.push({ source, series, spans: spansOf(dates) })
    if (found.length === SERIES_MAX) break
  }
  return found
}

export function recordingsEndpoint(lake: string): Endpoint {
  let listed: Promise<readonly RecordedSeries[]> | undefined
  let listedAtMs = 0
  return defineEndpoint({
    path: '/explorer/recordings',
    summary: 'Series and dates with order books, for the explorer.',
    parameters: [],
    async handle() {
      if (listed === undefined || Date.now() - listedAtMs > LISTED_FOR_MS) {
        listedAtMs = Date.now()
        listed = recordedSeries(lake)
      }
      try {
        return jsonReply(await listed)
      } catch (error) {
        listed = undefined
        throw error
      }
    },
  })
}
