// The archive of climate reports: each station's products, month by month of their issue.

import { AFOS_SETTLE_MS } from '../../../shared/limits.ts'
import { addDays, MS_PER_DAY, utcDateOf } from '../../../shared/utc-date.ts'
import { monthsOf, pollRecentDays, settledPart, stationHistory } from '../archive-windows.ts'
import type { IngestSource, StationSourceOptions } from '../source.ts'
import type { AfosClient } from './afos-client.ts'
import type { ClimateReport } from './parse.ts'
import type { ClimateReportError } from './report-error.ts'
import { fetchedReports } from './stored-reports.ts'

const NAME = 'climate-afos'

export function afosSource({ client, stations, intervalMs }: StationSourceOptions<AfosClient>): IngestSource {
  const history = stationHistory(stations, monthsOf, async (station, window, { clock }, signal) => {
    const nowMs = clock.nowMs()
    const reports: ClimateReport[] = []
    const errors: ClimateReportError[] = []
    // The archive is asked by dates: whole ones that cover the window.
    const from = utcDateOf(window.fromMs)
    const to = addDays(utcDateOf(window.toMs - 1), 1)
    for await (const part of client.windows({ pil: station.climatePil, from, to, nowMs, signal })) {
      reports.push(...part.reports)
      errors.push(...part.errors)
    }
    const asked = { fromMs: window.fromMs, toMs: Date.parse(to) }
    const completed = settledPart(asked, Math.max(AFOS_SETTLE_MS, MS_PER_DAY), nowMs)
    return fetchedReports({ reports, errors }, stations, 'iem', { completed, nowMs })
  })
  return {
    name: NAME,
    intervalMs,
    history,
    poll: (context) => pollRecentDays(NAME, history, context),
    close: () => client.close(),
  }
}
