// Daily climate records: the columns (contract.md 19), the report types and the rule which of several records
// of one station and date is served. Pure, so that SQL, compaction and tests can be held against it. It does not
// decide what type a report has: that is the ingest's classification (server/ingest/climate-reports/station-reports.ts).

import { groupedBy } from './grouped-by.ts'
import type { RecordField, RecordOf } from './record-field.ts'

/** Report types, the highest priority first. */
export const REPORT_TYPES = ['final', 'correction', 'preliminary', 'estimated'] as const
export type ReportType = (typeof REPORT_TYPES)[number]

/** `nws` and `iem` carry official products, `acis` estimates. */
export type ClimateSource = 'nws' | 'iem' | 'acis'

/** Every served field, in serving order. An estimate is no product: it has neither an id nor an issue time. */
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

/** Whether the record comes from an official product of any kind, and not from the estimate. */
export function isOfficial(record: Pick<ClimateRecord, 'report_type'>): boolean {
  return record.report_type !== 'estimated'
}

/**
 * The record that is served for one station and date, out of all its records; undefined when there is none.
 *
 * The highest priority wins, and of equals the first issued, because that is what settles. A market settles on the
 * first non-preliminary report that includes its value, so a report with a missing value gives way to the next one
 * that says all it says and adds the missing value as it was first stated. Final and correction may complete one
 * another, since a corrected report is a non-preliminary one too. Nothing is mixed out of two records, a report that
 * states another value never replaces the first, and a missing official value never lets a preliminary report or an
 * estimate in.
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

/** The served record of every station and date, by date and then station. */
export function servedRecords(records: Iterable<ClimateRecord>): ClimateRecord[] {
  return groupByStationDate(records)
    .map((group) => servedRecord(group))
    .filter((record) => record !== undefined)
    .toSorted(compareKey)
}

/** The records of each station and date together, in no particular order. */
export function groupByStationDate<R extends Pick<ClimateRecord, 'station_code' | 'observation_date'>>(
  records: Iterable<R>,
): R[][] {
  return [...groupedBy(records, (record) => `${record.station_code} ${record.observation_date}`).values()]
}

/** By issue time, then product id; null (an estimate) last. */
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

/** Reports that may complete one another: the settling ones, preliminary ones, estimates. */
function classOf(record: ClimateRecord): ReportType {
  return record.report_type === 'correction' ? 'final' : record.report_type
}

function compareRank(a: ClimateRecord, b: ClimateRecord): number {
  const byPriority = REPORT_TYPES.indexOf(a.report_type) - REPORT_TYPES.indexOf(b.report_type)
  return byPriority || compareIssue(a, b) || compareContent(a, b)
}

/** Only so that the result never depends on the order in which equal-looking records arrive. */
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
