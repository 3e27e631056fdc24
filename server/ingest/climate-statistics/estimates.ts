// Which days of the climate statistics become estimated records: those that are over and have no official report.
// Pure. An estimate that was made before an official report came stays stored; it is never served beside one, because
// its priority is the lowest (shared/climate.ts).

import { type ClimateRecord, isOfficial } from '../../../shared/climate.ts'
import type { DailyExtremes } from './parse.ts'

export interface EstimateScope {
  readonly stationCode: string
  /** See `lastClosedClimateDate`: a running day's maximum is none yet. */
  readonly lastClosedDate: string
}

/** Estimated records for the days without an official one among `records`; a day without any value gives none. */
export function estimatedRecords(
  scope: EstimateScope,
  days: Iterable<DailyExtremes>,
  records: Iterable<Pick<ClimateRecord, 'station_code' | 'observation_date' | 'report_type'>>,
): ClimateRecord[] {
  const official = new Set<string>()
  for (const record of records) {
    if (record.station_code === scope.stationCode && isOfficial(record)) official.add(record.observation_date)
  }
  const estimates: ClimateRecord[] = []
  for (const { date, maxTempF, minTempF } of days) {
    if (date > scope.lastClosedDate || official.has(date)) continue
    if (maxTempF === null && minTempF === null) continue
    estimates.push({
      station_code: scope.stationCode,
      observation_date: date,
      high_temp_f: maxTempF,
      low_temp_f: minTempF,
      report_type: 'estimated',
      source: 'acis',
      product_id: null,
      issued_at: null,
    })
  }
  return estimates
}
