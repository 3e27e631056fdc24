// The gaps in a station's daily climate reports: dates without any record or, on request, without an official one.
// Dates after the last closed climate day are not missing yet. Pure; the caller fetches the records of the range.

import { type ClimateRecord, isOfficial } from './climate.ts'
import { addDays } from './utc-date.ts'

/** A run of missing dates, both ends included (contract.md 21). A type alias, because an interface is not assignable to a Record. */
export type ClimateGap = {
  readonly station_code: string
  readonly gap_start: string
  readonly gap_end: string
  readonly missing_days: number
}

export interface ClimateGapQuery {
  readonly stationCode: string
  /** The first and last requested date. */
  readonly from: string
  readonly to: string
  /** See `lastClosedClimateDate`. */
  readonly lastClosedDate: string
  /** Whether a date with only an estimate counts as missing. */
  readonly official: boolean
}

/** Gaps in date order. Records of other stations or outside the range are ignored. */
export function climateGaps(
  query: ClimateGapQuery,
  records: Iterable<Pick<ClimateRecord, 'station_code' | 'observation_date' | 'report_type'>>,
): ClimateGap[] {
  const present = new Set<string>()
  for (const record of records) {
    if (record.station_code !== query.stationCode) continue
    if (!query.official || isOfficial(record)) present.add(record.observation_date)
  }
  const last = query.to < query.lastClosedDate ? query.to : query.lastClosedDate
  const gaps: ClimateGap[] = []
  let gapStart: string | undefined
  let missingDays = 0
  const close = (gapEnd: string): void => {
    if (gapStart === undefined) return
    gaps.push({
      station_code: query.stationCode,
      gap_start: gapStart,
      gap_end: gapEnd,
      missing_days: missingDays,
    })
    gapStart = undefined
    missingDays = 0
  }
  for (let date = query.from; date <= last; date = addDays(date, 1)) {
    if (present.has(date)) {
      close(addDays(date, -1))
    } else {
      gapStart ??= date
      missingDays += 1
    }
  }
  close(last)
  return gaps
}
