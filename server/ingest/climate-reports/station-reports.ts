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
  const matched: ClimateReportRow[] = []
  for (const report of reports) {
    const station = stations.find((candidate) => isOf(candidate, report))
    const rivals = reports.filter(
      (other) =>
        station !== undefined &&
        other.productId === report.productId &&
        other.issuedAtMs === report.issuedAtMs &&
        other.stationName !== report.stationName &&
        isOf(station, other),
    )
    if (station !== undefined && rivals.length === 0) matched.push(toStationReport(report, station, source))
  }
  return matched
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

function isOf(station: Station, report: ClimateReport): boolean {
  return station.climatePil === report.pil && words(report.stationName).includes(words(station.climateName))
}

function toStationReport(
  report: ClimateReport,
  station: Station,
  source: ClimateReportRow['source'],
): ClimateReportRow {
  return {
    station_code: station.code,
    observation_date: report.climateDate,
    high_temp_f: report.highTempF,
    low_temp_f: report.lowTempF,
    report_type: report.kind,
    source,
    product_id: report.productId,
    issued_at: report.issuedAtMs,
    is_correction: report.isCorrection,
  }
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
