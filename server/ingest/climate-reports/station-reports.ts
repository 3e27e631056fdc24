// Parsed reports → the records to store: the station of each report, and its type among all reports of its station and date. Pure
// and independent of order, so that live feed and archive may deliver in any order and repeatedly: classify the new reports
// together with all stored ones of their station and date.

import { compareIssue, groupByStationDate } from '../../../shared/climate.ts'
import type { Station } from '../../../shared/stations.ts'
import type { ClimateReportRow } from '../../storage/climate-store.ts'
import type { ClimateReport } from './parse.ts'

/**
 * Finds each report's station by product line and headline. If several headlines of one product match a station, none is taken: a
 * wrong value is worse than a gap. Reports of other places are left out.
 */
export function matchStations(
  reports: readonly ClimateReport[],
  stations: readonly Station[],
  source: ClimateReportRow['source'],
): ClimateReportRow[] {
  return reports.flatMap(({ pil, stationName, ...report }) => {
    const station = stations.find((candidate) => isOf(candidate, { pil, stationName }))
    if (station === undefined) return []
    const hasRival = reports.some(
      (other) =>
        other.product_id === report.product_id &&
        other.issued_at === report.issued_at &&
        other.stationName !== stationName &&
        isOf(station, other),
    )
    return hasRival ? [] : [{ ...report, station_code: station.code, source }]
  })
}

/**
 * Gives every report its type. Per station and date, in order of issue: a preliminary report stays preliminary, corrected or not.
 * Of the others, the first to state a value sets it. A report is a correction if it says so, or if it states another value, because
 * offices also re-issue without notice. A report that agrees, or only adds a missing value, is final. Each product may occur once.
 */
export function classifyReports(reports: Iterable<ClimateReportRow>): ClimateReportRow[] {
  return groupByStationDate(reports).flatMap((group) => {
    const known = { high: null as number | null, low: null as number | null }
    return group.toSorted(compareIssue).map((report): ClimateReportRow => {
      if (report.report_type === 'preliminary') return report
      const differs = isOther(report.high_temp_f, known.high) || isOther(report.low_temp_f, known.low)
      known.high ??= report.high_temp_f
      known.low ??= report.low_temp_f
      return { ...report, report_type: report.is_correction || differs ? 'correction' : 'final' }
    })
  })
}

function isOf(station: Station, { pil, stationName }: Pick<ClimateReport, 'pil' | 'stationName'>): boolean {
  return station.climatePil === pil && words(stationName).includes(words(station.climateName))
}

/** Letters and digits only, so that HOUSTON/HOBBY and CHICAGO-MIDWAY are words; framed, so that words match whole. */
function words(name: string): string {
  return ` ${name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, ' ')
    .trim()} `
}

function isOther(value: number | null, known: number | null): boolean {
  return value !== null && known !== null && value !== known
}
