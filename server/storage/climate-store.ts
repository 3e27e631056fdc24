// Every official climate report and one estimate per station and date. A report is stored once and its values are never
// overwritten; only its type may change, if an earlier report arrives late. The ingest passes a function that finds the types of
// all reports of a date. An estimate is stored only if there is no official report, and a newer estimate replaces it.

import { sql } from '../../shared/sql/statement.ts'
import { groupByStationDate } from '../../shared/climate.ts'
import {
  climateDates,
  STORED_CLIMATE_COLUMNS,
  type StoredClimateRecord,
} from '../../shared/sql/climate-queries.ts'
import {
  assignments,
  bulkStatement,
  differs,
  oneOfEachKey,
  recordset,
  writeBatches,
  writeRows,
} from './bulk-write.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/**
 * An official report, as the ingest makes it. Before classification, `report_type` is `preliminary` or not. `is_correction` is
 * stored so that types can be found again when an earlier report arrives late.
 */
export interface ClimateReportRow extends StoredClimateRecord {
  readonly source: 'nws' | 'iem'
  readonly report_type: 'final' | 'correction' | 'preliminary'
  readonly product_id: string
  readonly issued_at: number
}

/** Finds the type of each report, given all reports of some stations and dates, each product once, in any order. */
export type ClassifyReports = (reports: readonly ClimateReportRow[]) => readonly ClimateReportRow[]

/** An estimate for one station and date. */
export type ClimateEstimate = Pick<
  StoredClimateRecord,
  'station_code' | 'observation_date' | 'high_temp_f' | 'low_temp_f'
>

const LIST = Object.keys(STORED_CLIMATE_COLUMNS).join(', ')
const KEY = 'station_code, observation_date, product_id'
const WRITTEN = recordset(STORED_CLIMATE_COLUMNS)
const DATE_TYPES = { station_code: 'text', observation_date: 'date' } as const
const DATES = recordset(DATE_TYPES)

const REPORTS_OF_DATES = `
  SELECT ${LIST} FROM climate_records JOIN ${DATES} USING (station_code, observation_date)
  WHERE report_type <> 'estimated'`

// A second copy of a product may add a value that the first one lacked; it never changes a value.
const UPSERT_REPORTS = `
  INSERT INTO climate_records (${LIST}, received_at)
  SELECT ${LIST}, now() FROM ${WRITTEN} ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO UPDATE
  SET report_type = excluded.report_type,
    high_temp_f = coalesce(climate_records.high_temp_f, excluded.high_temp_f),
    low_temp_f = coalesce(climate_records.low_temp_f, excluded.low_temp_f),
    written_at = clock_timestamp()
  WHERE climate_records.report_type <> excluded.report_type
    OR (climate_records.high_temp_f IS NULL AND excluded.high_temp_f IS NOT NULL)
    OR (climate_records.low_temp_f IS NULL AND excluded.low_temp_f IS NOT NULL)
  RETURNING 1`

const VALUES = ['high_temp_f', 'low_temp_f', 'source']
const UPSERT_ESTIMATES = `
  INSERT INTO climate_records (${LIST}, received_at)
  SELECT ${LIST}, now() FROM ${WRITTEN}
  WHERE NOT EXISTS (SELECT FROM climate_records official
    WHERE official.station_code = written.station_code AND official.observation_date = written.observation_date
      AND official.report_type <> 'estimated')
  ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO UPDATE
  SET ${assignments(VALUES)}, received_at = excluded.received_at, written_at = clock_timestamp()
  WHERE ${differs('climate_records', VALUES)}
  RETURNING 1`

/** Stores new reports and updates the types of all reports of their dates; returns the number of changes. */
export async function writeClimateReports(
  transaction: StoreTransaction,
  reports: readonly ClimateReportRow[],
  classify: ClassifyReports,
): Promise<number> {
  await lockWriters(transaction)
  let changedCount = 0
  // A batch never splits a date.
  for (const batch of writeBatches(groupByStationDate(reports))) {
    const incoming = batch.flat()
    const dates = bulkStatement(REPORTS_OF_DATES, oneOfEachKey(incoming, dateKey), DATE_TYPES)
    const stored = await transaction.run<ClimateReportRow>(dates)
    const classified = classify(withoutCopies([...stored, ...incoming]))
    changedCount += (await transaction.run(bulkStatement(UPSERT_REPORTS, classified, STORED_CLIMATE_COLUMNS)))
      .length
  }
  if (changedCount > 0) transaction.markChanged('climate')
  return changedCount
}

/** Stores estimates for dates without an official report; returns how many are new or changed. */
export async function writeClimateEstimates(
  transaction: StoreTransaction,
  estimates: readonly ClimateEstimate[],
): Promise<number> {
  await lockWriters(transaction)
  const rows = oneOfEachKey(estimates, dateKey).map((estimate): StoredClimateRecord => ({
    ...estimate,
    report_type: 'estimated',
    source: 'acis',
    product_id: null,
    issued_at: null,
    is_correction: false,
  }))
  const changed = await writeRows(transaction, UPSERT_ESTIMATES, rows, STORED_CLIMATE_COLUMNS)
  if (changed.length > 0) transaction.markChanged('climate')
  return changed.length
}

/** Each kind of record that a station has on each date, both dates inclusive, by date. */
export function readClimateDates(
  postgres: Postgres,
  stationCode: string,
  from: string,
  to: string,
): Promise<readonly Pick<StoredClimateRecord, 'station_code' | 'observation_date' | 'report_type'>[]> {
  return postgres.run(climateDates(stationCode, from, to))
}

/** One writer at a time, because a report's type depends on the other reports of its date. Readers do not wait. */
async function lockWriters(transaction: StoreTransaction): Promise<void> {
  await transaction.run(sql`LOCK TABLE climate_records IN SHARE ROW EXCLUSIVE MODE`)
}

/** Each product once, as it will be stored: the first copy, with missing values taken from later ones. */
function withoutCopies(reports: readonly ClimateReportRow[]): ClimateReportRow[] {
  const keyOf = (report: ClimateReportRow): string => `${dateKey(report)} ${report.product_id}`
  return oneOfEachKey(reports, keyOf, (known, { high_temp_f, low_temp_f }) => ({
    ...known,
    high_temp_f: known.high_temp_f ?? high_temp_f,
    low_temp_f: known.low_temp_f ?? low_temp_f,
  }))
}

function dateKey(row: { readonly station_code: string; readonly observation_date: string }): string {
  return `${row.station_code} ${row.observation_date}`
}
