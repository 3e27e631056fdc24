// Estimates of daily extremes for dates without an official report. Months in which every closed date has a report are not
// requested.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import { lastClosedClimateDate } from '../../../shared/climate-day.ts'
import { isOfficial } from '../../../shared/climate.ts'
import type { Station } from '../../../shared/stations.ts'
import { utcDateOf, utcDatesBetween } from '../../../shared/utc-date.ts'
import { readClimateDates, writeClimateEstimates } from '../../storage/climate-store.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import { archiveSource, monthsOf, settledPart, stationHistory } from '../archive-windows.ts'
import type { FetchedRows, IngestSource, SourceContext, StationSourceOptions } from '../source.ts'
import type { ClimateStatisticsClient } from './client.ts'
import type { DailyExtremes } from './parse.ts'

const NAME = 'climate-statistics'

export function climateStatisticsSource(
  options: StationSourceOptions<ClimateStatisticsClient>,
): IngestSource {
  const history = stationHistory(options.stations, monthsOf, (station, window, context) =>
    fetchEstimates(options.client, station, window, context),
  )
  return archiveSource(NAME, options, history)
}

async function fetchEstimates(
  client: ClimateStatisticsClient,
  station: Station,
  window: TimeWindow,
  { clock, postgres, signal }: SourceContext,
): Promise<FetchedRows> {
  const nowMs = clock.nowMs()
  // The maximum of the current day is not final.
  const lastClosedDate = lastClosedClimateDate(nowMs, station.standardOffsetHours)
  const from = utcDateOf(window.fromMs)
  const last = utcDateOf(window.toMs - 1)
  const to = last < lastClosedDate ? last : lastClosedDate
  const completed = settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs)
  const known = await readClimateDates(postgres, station.code, from, to)
  const official = new Set(known.filter(isOfficial).map(({ observation_date }) => observation_date))
  if (utcDatesBetween(from, to).every((date) => official.has(date))) {
    return { write: async () => 0, problems: [], completed }
  }
  const { days, problems } = await client.dailyExtremes({ sid: station.icao, from, to }, signal)
  const estimates = days.filter(hasValue).map(({ date, maxTempF, minTempF }) => ({
    station_code: station.code,
    observation_date: date,
    high_temp_f: maxTempF,
    low_temp_f: minTempF,
  }))
  return {
    write: (transaction) => writeClimateEstimates(transaction, estimates),
    problems,
    completed: problems.length > 0 ? null : completed,
  }
}

function hasValue({ maxTempF, minTempF }: DailyExtremes): boolean {
  return maxTempF !== null || minTempF !== null
}
