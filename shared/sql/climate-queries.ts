// Statements behind `/climate` and `/analysis/climate-gaps`. They return whole groups: every record of a station and
// date, in order of issue. Which of them is served is one rule in one place (shared/climate.ts) and not repeated in
// SQL. Climate records never move to the lake.

import type { ClimateRecord } from '../climate.ts'
import type { BatchStart, KeysetRead } from './keyset-pages.ts'
import { type SqlStatement, StatementBuilder } from './statement.ts'

/** A record as it is stored. */
export interface StoredClimateRecord extends ClimateRecord {
  /** What the product's own text says of itself; false for an estimate. */
  readonly is_correction: boolean
}

export const STORED_CLIMATE_COLUMNS =
  'station_code, observation_date, high_temp_f, low_temp_f, report_type, source, product_id, issued_at, is_correction'

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
  /** Issue time in milliseconds and product; null for the estimate, which comes last of its date. */
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

/** Which kinds of record each date of a station has: rows of station_code, observation_date, report_type, by date. */
export function climateDates(stationCode: string, from: string, to: string): SqlStatement {
  const statement = selected({ stationCode, from, to })
  return statement.build(
    `SELECT DISTINCT station_code, observation_date, report_type FROM climate_records ${statement.whereClause}` +
      ` ORDER BY observation_date, report_type`,
  )
}

function groupStatement(selection: ClimateSelection, start: BatchStart<GroupKey>): SqlStatement {
  const statement = selected(selection)
  if (start.key !== null) {
    const { date, stationCode } = start.key
    const after = `(${statement.add(date, 'date')}, ${statement.add(stationCode, 'text')})`
    statement.where(`(observation_date, station_code) > ${after}`)
  }
  const page = `LIMIT ${statement.add(start.limit, 'int8')} OFFSET ${statement.add(start.offset, 'int8')}`
  return statement.build(
    `SELECT ${STORED_CLIMATE_COLUMNS} FROM climate_records JOIN (` +
      `SELECT DISTINCT observation_date, station_code FROM climate_records ${statement.whereClause}` +
      ` ORDER BY observation_date, station_code ${page}) page USING (observation_date, station_code)` +
      ` ORDER BY observation_date, station_code, issued_at NULLS LAST, product_id NULLS LAST`,
  )
}

function revisionStatement(selection: ClimateSelection, start: BatchStart<RevisionKey>): SqlStatement {
  const statement = selected(selection)
  // A row comparison cannot put null last, so infinity and an empty text stand for the estimate's nulls.
  const order = `(observation_date, station_code, coalesce(issued_at, 'infinity'), coalesce(product_id, ''))`
  if (start.key !== null) {
    const { date, stationCode, issuedMs, productId } = start.key
    const after = [
      statement.add(date, 'date'),
      statement.add(stationCode, 'text'),
      issuedMs === null ? `'infinity'::timestamptz` : statement.addInstant(issuedMs),
      statement.add(productId ?? '', 'text'),
    ]
    statement.where(`${order} > (${after.join(', ')})`)
  }
  return statement.build(
    `SELECT ${STORED_CLIMATE_COLUMNS} FROM climate_records ${statement.whereClause}` +
      ` ORDER BY observation_date, station_code, coalesce(issued_at, 'infinity'), coalesce(product_id, '')` +
      ` LIMIT ${statement.add(start.limit, 'int8')} OFFSET ${statement.add(start.offset, 'int8')}`,
  )
}

function selected(selection: ClimateSelection): StatementBuilder {
  const statement = new StatementBuilder()
  if (selection.stationCode !== null) {
    statement.where(`station_code = ${statement.add(selection.stationCode, 'text')}`)
  }
  if (selection.from !== null) {
    statement.where(`observation_date >= ${statement.add(selection.from, 'date')}`)
  }
  if (selection.to !== null) {
    statement.where(`observation_date <= ${statement.add(selection.to, 'date')}`)
  }
  return statement
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
