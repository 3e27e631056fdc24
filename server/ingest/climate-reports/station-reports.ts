// From what the products say to the records that are stored: which report is which station's, and which type it has
// among all reports of its station and date. Pure and independent of order, so that live feed and archive may
// arrive in any sequence and again: classify all stored reports of a station and date together with the new ones.

import {
  type ClimateRecord,
  type ClimateSource,
  compareIssue,
  groupByStationDate,
} from '../../../shared/climate.ts'
import type { Station } from '../../../shared/stations.ts'
import type { ClimateReport } from './parse.ts'

/**
 * One official report as it is stored. Before classification `report_type` tells only preliminary from the rest.
 * `is_correction` is what the text said of itself; without it the type cannot be found anew when an earlier report
 * arrives late.
 */
export interface StationReport extends ClimateRecord {
  readonly source: Exclude<ClimateSource, 'acis'>
  readonly report_type: 'final' | 'correction' | 'preliminary'
  readonly product_id: string
  readonly issued_at: number
  readonly is_correction: boolean
}

export interface MatchedReports {
  readonly matched: readonly StationReport[]
  /** Reports of places that are no station here, or not clearly one. They are not stored. */
  readonly unmatched: readonly ClimateReport[]
}

/**
 * Finds each report's station by product line and headline. When several headlines of one product fit a station none
 * is taken: a wrong value is worse than a gap.
 */
export function matchStations(
  reports: readonly ClimateReport[],
  stations: readonly Station[],
  source: StationReport['source'],
): MatchedReports {
  const matched: StationReport[] = []
  const unmatched: ClimateReport[] = []
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
    if (station === undefined || rivals.length > 0) unmatched.push(report)
    else matched.push(toStationReport(report, station, source))
  }
  return { matched, unmatched }
}

/**
 * Gives every report its type. Per station and date, in order of issue: a preliminary report stays one, corrected or
 * not. Of the others, the first to state a value sets it; a report that calls itself a correction is one, and so is
 * one that states another value than the set one, because offices also re-issue silently. What agrees, or only adds
 * a value that was missing, is final. The same product from two sources is kept once.
 */
export function classifyReports(reports: Iterable<StationReport>): StationReport[] {
  return groupByStationDate(reports).flatMap((group) => {
    const known = { high: null as number | null, low: null as number | null }
    return withoutCopies(group).map((report): StationReport => {
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
  source: StationReport['source'],
): StationReport {
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

/**
 * In order of issue, each product once. A product id names one minute of one office, so two different texts could
 * share it; then the one with more values counts, and the choice does not depend on who came first.
 */
function withoutCopies(group: readonly StationReport[]): StationReport[] {
  const byProduct = new Map<string, StationReport>()
  for (const report of group) {
    const other = byProduct.get(report.product_id)
    if (other === undefined || compareCopies(report, other) < 0) byProduct.set(report.product_id, report)
  }
  return [...byProduct.values()].toSorted(compareIssue)
}

function compareCopies(a: StationReport, b: StationReport): number {
  const missing = (r: StationReport): number => Number(r.high_temp_f === null) + Number(r.low_temp_f === null)
  const key = (r: StationReport): string => {
    const isPreliminary = r.report_type === 'preliminary'
    return [
      r.source === 'nws' ? 0 : 1,
      isPreliminary,
      r.high_temp_f,
      r.low_temp_f,
      r.issued_at,
      r.is_correction,
    ].join(' ')
  }
  const [keyA, keyB] = [key(a), key(b)]
  return missing(a) - missing(b) || (keyA < keyB ? -1 : Number(keyA > keyB))
}
