// The archive of climate reports, by station and by month of climate dates. The archive is queried by issue time, and the final
// report of a date is issued the next morning, so a window of dates is requested with the days after it.

import { CLIMATE_FINAL_DUE_MS } from '../../../shared/limits.ts'
import { addDays, utcDateOf } from '../../../shared/utc-date.ts'
import { archiveSource, monthsOf, settledPart, stationHistory } from '../archive-windows.ts'
import type { IngestSource, StationSourceOptions } from '../source.ts'
import type { AfosClient } from './afos-client.ts'
import { fetchedReports } from './stored-reports.ts'

const NAME = 'climate-afos'
/** Days of issue after a climate date to request: they have its final report, even a late one, and corrections. */
const ISSUE_DAYS_AFTER = 3

export function afosSource(options: StationSourceOptions<AfosClient>): IngestSource {
  const { client, stations } = options
  const history = stationHistory(stations, monthsOf, async (station, window, { clock, signal }) => {
    const nowMs = clock.nowMs()
    const from = utcDateOf(window.fromMs)
    const to = addDays(utcDateOf(window.toMs - 1), 1 + ISSUE_DAYS_AFTER)
    const parsed = await client.products(station.climatePil, from, to, signal)
    const completed = settledPart(window, CLIMATE_FINAL_DUE_MS, nowMs)
    return fetchedReports(parsed, stations, 'iem', { completed, nowMs })
  })
  return archiveSource(NAME, options, history)
}
