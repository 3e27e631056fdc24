// Daily climate records: the columns (contract.md 19), the report types, and the rule that selects the served record of a station
// and date. Pure functions, so that SQL, compaction and tests can be compared with them. The ingest decides the type of a report
// (server/ingest/climate-reports/station-reports.ts).

import { groupedBy } from './grouped-by.ts'
import type { RecordField, RecordOf } from './record-field.ts'

/** Report types, the highest priority first. */
export const REPORT_TYPES = ['final', 'correction', 'preliminary', 'estimated'] as const
export type ReportType = (typeof REPORT_TYPES)[number]

/** `nws` and `iem` have official products, `acis` has estimates. */
export type ClimateSource = 'nws' | 'iem' | 'acis'

/** Every served field, in serving order. An estimate is not a product, so it has no id and no issue time. */
// oxfmt-ignore
export const CLIMATE_FIELDS = [
  { name: 'station_code', type: 'string', unit: 'none', nullable: false, meaning: 'Station code' },
  { name: 'observation_date', type: 'date', unit: 'none', nullable: false, meaning: 'Climate date: midnight to midnight local standard time' },
  { name: 'high_temp_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Daily high; null where the report does not have it' },
  { name: 'low_temp_f', type: 'number', unit: 'temperature', nullable: true, meaning: 'Daily low; null where the report does not have it' },
  { name: 'report_type', type: 'string', unit: 'none', nullable: false, meaning: '`final`, `correction`, `preliminary` or `estimated`' },
  { name: 'source', type: 'string', unit: 'none', nullable: false, meaning: 'Origin: `nws` or `iem` for official products, `acis` for estimates' },
  { name: 'product_id', type: 'string', unit: 'none', nullable: true, meaning: 'Identifier of the issued product; null for an estimate' },
  { name: 'issued_at', type: 'instant', unit: 'none', nullable: true, meaning: 'Issue time of the product; null for an estimate' },
] as const satisfies readonly RecordField[]

/** One record in raw units. A null is "not stated" and never becomes 0. */
export type ClimateRecord = RecordOf<
  (typeof CLIMATE_FIELDS)[number],
  { readonly report_type: ReportType; readonly source: ClimateSource }
>

/** Whether the record comes from an official product, not from an estimate. */
export function isOfficial(record: Pick<ClimateRecord, 'report_type'>): boolean {
  return record.report_type !== 'estimated'
}

/**
 * The served record among all records of one station and date; undefined if there is none.
 *
 * The record of the highest priority is served; among equals, the one that was issued first. A market settles on the first
 * non-preliminary report that includes its value. So a report with a missing value is replaced by the next report that repeats
 * its values and adds the missing one as it was first stated. Final reports and corrections may complete one another, since a
 * correction is non-preliminary too. Values of two records are never mixed. A report with a different value never replaces the
 * first. A missing official value never causes a preliminary report or an estimate to be served.
 */
export function servedRecord(records: Iterable<ClimateRecord>): ClimateRecord | undefined {
  const ranked = [...records].toSorted(compareRank)
  const first = ranked[0]
  if (first === undefined) return undefined
  const rivals = ranked.filter((record) => classOf(record) === classOf(first))
  const inOrderOfIssue = rivals.toSorted(compareIssue)
  const high = inOrderOfIssue.find((record) => record.high_temp_f !== null)?.high_temp_f ?? null
  const low = inOrderOfIssue.find((record) => record.low_temp_f !== null)?.low_temp_f ?? null
  let served = first
  for (const record of rivals) {
    const isFirstStatement = (record.high_temp_f ?? high) === high && (record.low_temp_f ?? low) === low
    if (isFirstStatement && completes(record, served)) served = record
  }
  return served
}

/** The served record of every station and date, sorted by date and station. */
export function servedRecords(records: Iterable<ClimateRecord>): ClimateRecord[] {
  return groupByStationDate(records)
    .map((group) => servedRecord(group))
    .filter((record) => record !== undefined)
    .toSorted(compareKey)
}

/** Groups records by station and date, in no particular order. */
export function groupByStationDate<R extends Pick<ClimateRecord, 'station_code' | 'observation_date'>>(
  records: Iterable<R>,
): R[][] {
  return [...groupedBy(records, (record) => `${record.station_code} ${record.observation_date}`).values()]
}

/** Compares by issue time, then product id; null (an estimate) last. */
export function compareIssue(
  a: Pick<ClimateRecord, 'issued_at' | 'product_id'>,
  b: Pick<ClimateRecord, 'issued_at' | 'product_id'>,
): number {
  return compare(a.issued_at, b.issued_at) || compare(a.product_id, b.product_id)
}

/** Whether `record` states every value that `other` states, and at least one more. */
function completes(record: ClimateRecord, other: ClimateRecord): boolean {
  return (
    (other.high_temp_f === null || record.high_temp_f === other.high_temp_f) &&
    (other.low_temp_f === null || record.low_temp_f === other.low_temp_f) &&
    valueCount(record) > valueCount(other)
  )
}

function valueCount(record: ClimateRecord): number {
  return Number(record.high_temp_f !== null) + Number(record.low_temp_f !== null)
}

/** The class within which reports may complete one another: settling (final and correction), preliminary, estimated. */
function classOf(record: ClimateRecord): ReportType {
  return record.report_type === 'correction' ? 'final' : record.report_type
}

function compareRank(a: ClimateRecord, b: ClimateRecord): number {
  const byPriority = REPORT_TYPES.indexOf(a.report_type) - REPORT_TYPES.indexOf(b.report_type)
  return byPriority || compareIssue(a, b) || compareContent(a, b)
}

/** The last tie-break, so that the result does not depend on the order of the input. */
function compareContent(a: ClimateRecord, b: ClimateRecord): number {
  const key = (r: ClimateRecord): string => `${r.report_type} ${r.source} ${r.high_temp_f} ${r.low_temp_f}`
  return compare(key(a), key(b))
}

function compareKey(a: ClimateRecord, b: ClimateRecord): number {
  return compare(a.observation_date, b.observation_date) || compare(a.station_code, b.station_code)
}

/** Null last. */
function compare<V extends string | number>(a: V | null, b: V | null): number {
  if (a === b) return 0
  if (a === null) return 1
  if (b === null) return -1
  return a < b ? -1 : 1
}
