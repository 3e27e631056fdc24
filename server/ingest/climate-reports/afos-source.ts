// The archive of climate reports: each station's climate dates, month by month. The archive is asked by time of issue, and
// a date's final report is issued on the next morning, so a window of dates is asked for together with the days after it.

import { CLIMATE_FINAL_DUE_MS } from '../../../shared/limits.ts'
import { addDays, utcDateOf } from '../../../shared/utc-date.ts'
import { archiveSource, monthsOf, settledPart, stationHistory } from '../archive-windows.ts'
import type { IngestSource, StationSourceOptions } from '../source.ts'
import type { AfosClient } from './afos-client.ts'
import { fetchedReports } from './stored-reports.ts'

const NAME = 'climate-afos'
/** Days of issue after a climate date that are asked for: its final report, also a late one, and corrections. */
const ISSUE_DAYS_AFTER = 3

export function afosSource(options: StationSourceOptions<AfosClient>): IngestSource {
  const { client, stations } = options
  const history = stationHistory(stations, monthsOf, async (station, window, { clock, signal }) => {
    const nowMs = clock.nowMs()
    const from = utcDateOf(window.fromMs)
    const to = addDays(utcDateOf(window.toMs - 1), 1 + ISSUE_DAYS_AFTER)
    const parsed = await client.products({ pil: station.climatePil, from, to, signal })
    const completed = settledPart(window, CLIMATE_FINAL_DUE_MS, nowMs)
    return fetchedReports(parsed, stations, 'iem', { completed, nowMs })
  })
  return archiveSource(NAME, options, history)
}
