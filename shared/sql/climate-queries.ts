// Statements for `/climate` and `/analysis/climate-gaps`. They return whole groups: every record of a station and date, in order
// of issue. The rule that selects the served record is only in shared/climate.ts, not in SQL. Climate records never move to the
// lake.

import { CLIMATE_FIELDS, type ClimateRecord } from '../climate.ts'
import type { BatchStart, KeysetRead } from './keyset-pages.ts'
import { instantValue, rawSql, type Sql, type SqlStatement, sql, typedValue, whereAll } from './statement.ts'
import { columnsOf } from './stored-row.ts'

/** A stored record. */
export interface StoredClimateRecord extends ClimateRecord {
  /** Whether the product's text calls it a correction; false for an estimate. */
  readonly is_correction: boolean
}

/** Every stored column of a record: name and SQL type. */
export const STORED_CLIMATE_COLUMNS = {
  ...columnsOf(CLIMATE_FIELDS),
  is_correction: 'boolean',
} as const satisfies Record<keyof StoredClimateRecord, string>
const COLUMNS = rawSql(Object.keys(STORED_CLIMATE_COLUMNS).join(', '))

/** Both dates inclusive. Null is no condition. */
export interface ClimateSelection {
  readonly stationCode: string | null
  readonly from: string | null
  readonly to: string | null
}

interface GroupKey {
  readonly date: string
  readonly stationCode: string
}

interface RevisionKey extends GroupKey {
  /** Issue time in milliseconds, and product; null for the estimate, which is the last record of its date. */
  readonly issuedMs: number | null
  readonly productId: string | null
}

/** Groups by (observation_date, station_code); limit and offset count groups. */
export function climateGroupRead(selection: ClimateSelection): KeysetRead<StoredClimateRecord, GroupKey> {
  return {
    statementFor: (start) => groupStatement(selection, start),
    keyOf: (row) => ({ date: row.observation_date, stationCode: row.station_code }),
    countUnits: countGroups,
  }
}

/** All records by (observation_date, station_code, issued_at, product_id), the estimate last; limit counts records. */
export function climateRevisionRead(
  selection: ClimateSelection,
): KeysetRead<StoredClimateRecord, RevisionKey> {
  return {
    statementFor: (start) => revisionStatement(selection, start),
    keyOf: (row) => ({
      date: row.observation_date,
      stationCode: row.station_code,
      issuedMs: row.issued_at,
      productId: row.product_id,
    }),
  }
}

/** The report types of each date of a station: rows of station_code, observation_date, report_type, by date. */
export function climateDates(stationCode: string, from: string, to: string): SqlStatement {
  return sql`SELECT DISTINCT station_code, observation_date, report_type FROM climate_records
    ${whereAll(...selected({ stationCode, from, to }))} ORDER BY observation_date, report_type`
}

function groupStatement(
  selection: ClimateSelection,
  { key, limit, offset }: BatchStart<GroupKey>,
): SqlStatement {
  const after =
    key !== null &&
    sql`(observation_date, station_code) > (${typedValue(key.date, 'date')}, ${key.stationCode})`
  return sql`SELECT ${COLUMNS} FROM climate_records JOIN (
      SELECT DISTINCT observation_date, station_code FROM climate_records ${whereAll(...selected(selection), after)}
      ORDER BY observation_date, station_code LIMIT ${limit} OFFSET ${offset}
    ) page USING (observation_date, station_code)
    ORDER BY observation_date, station_code, issued_at NULLS LAST, product_id NULLS LAST`
}

// A row comparison cannot sort nulls last, so infinity and an empty text stand for the estimate's nulls.
const REVISION_ORDER = rawSql(
  `observation_date, station_code, coalesce(issued_at, 'infinity'), coalesce(product_id, '')`,
)

function revisionStatement(
  selection: ClimateSelection,
  { key, limit, offset }: BatchStart<RevisionKey>,
): SqlStatement {
  const conditions = selected(selection)
  if (key !== null) {
    const { date, stationCode, issuedMs, productId } = key
    const issued = issuedMs === null ? typedValue('infinity', 'timestamptz') : instantValue(issuedMs)
    const after = sql`${typedValue(date, 'date')}, ${stationCode}, ${issued}, ${productId ?? ''}`
    conditions.push(sql`(${REVISION_ORDER}) > (${after})`)
  }
  return sql`SELECT ${COLUMNS} FROM climate_records ${whereAll(...conditions)}
    ORDER BY ${REVISION_ORDER} LIMIT ${limit} OFFSET ${offset}`
}

function selected({ stationCode, from, to }: ClimateSelection): (Sql | false)[] {
  return [
    stationCode !== null && sql`station_code = ${stationCode}`,
    from !== null && sql`observation_date >= ${typedValue(from, 'date')}`,
    to !== null && sql`observation_date <= ${typedValue(to, 'date')}`,
  ]
}

function countGroups(rows: readonly StoredClimateRecord[]): number {
  let count = 0
  let previous: StoredClimateRecord | undefined
  for (const row of rows) {
    if (row.observation_date !== previous?.observation_date || row.station_code !== previous.station_code) {
      count += 1
    }
    previous = row
  }
  return count
}
