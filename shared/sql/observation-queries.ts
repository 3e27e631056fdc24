// The hot half of `/observations`: statements over the reports in the relational store. As for candles, rows that the manifest
// declares cold are left out. The caller converts units and time zones.

import { type Observation, OBSERVATION_FIELDS, type ObservationType } from '../observation.ts'
import { countOutside, type CoveredSpan } from './covered-spans.ts'
import type { BatchStart, KeysetRead } from './keyset-pages.ts'
import { generationColumn, type WithGeneration } from './manifest-queries.ts'
import { instantValue, rawSql, type Sql, type SqlStatement, sql, whereAll } from './statement.ts'
import { columnsOf } from './stored-row.ts'

const { station_code, observed_at, ...others } = columnsOf(OBSERVATION_FIELDS)

/** Every stored column of an observation: name and SQL type. Instants are milliseconds since the epoch. */
export const STORED_OBSERVATION_COLUMNS = {
  station_code,
  observed_at,
  received_at: 'timestamptz',
  ...others,
} as const satisfies Record<keyof Observation, string>

/** One report in raw units. A null is "not reported". */
export type StoredObservation = Observation

/** `fromMs` inclusive, `toMs` exclusive. Null is no condition. */
export interface ObservationSelection {
  readonly stationCode: string | null
  readonly type: ObservationType | null
  readonly fromMs: number
  readonly toMs: number
}

/** The primary key in the order of the answer. */
export interface ObservationKey {
  readonly observedMs: number
  readonly stationCode: string
  readonly type: string
}

const COUNTED = {
  from: rawSql('observations o'),
  scope: rawSql('o.station_code'),
  instant: rawSql('o.observed_at'),
}
const COLUMNS = rawSql(Object.keys(STORED_OBSERVATION_COLUMNS).join(', '))
const ORDER = rawSql('o.observed_at, o.station_code, o.observation_type')
// Looks up the one partition that an observation can belong to, a year of its station, by its whole key.
const IS_HOT = sql`NOT EXISTS (SELECT FROM lake_manifest p WHERE p.dataset = 'observations' AND p.scope = o.station_code
  AND p.period_start = date_trunc('year', o.observed_at, 'UTC') AND o.observed_at < p.cut_over)`

/**
 * The observations of a range by (observed_at, station_code, observation_type), each with the generation of the manifest
 * that it was read under.
 */
export function plannedObservationRead(
  selection: ObservationSelection,
): KeysetRead<StoredObservation & WithGeneration, ObservationKey> {
  return { statementFor: (start) => rangeStatement(selection, start), keyOf: observationKey }
}

function observationKey(row: StoredObservation): ObservationKey {
  return { observedMs: row.observed_at, stationCode: row.station_code, type: row.observation_type }
}

/** One row with `rows`: the number of observations outside the covered spans, counted up to `countMax`. */
export function observationCount(
  selection: ObservationSelection,
  covered: readonly CoveredSpan[],
  countMax: number,
): SqlStatement {
  const conditions = [...selected(selection), sql`o.observed_at >= ${instantValue(selection.fromMs)}`]
  return countOutside(conditions, COUNTED, covered, countMax)
}

function rangeStatement(
  selection: ObservationSelection,
  { key, limit, offset }: BatchStart<ObservationKey>,
): SqlStatement {
  const after =
    key === null
      ? sql`o.observed_at >= ${instantValue(selection.fromMs)}`
      : sql`(${ORDER}) > (${instantValue(key.observedMs)}, ${key.stationCode}, ${key.type})`
  return sql`SELECT ${COLUMNS}, ${generationColumn('observations')} FROM observations o
    ${whereAll(...selected(selection), after)} ORDER BY ${ORDER} LIMIT ${limit} OFFSET ${offset}`
}

/** The selection's conditions without the lower bound, which later batches replace by their key. */
function selected({ stationCode, type, toMs }: ObservationSelection): (Sql | false)[] {
  return [
    stationCode !== null && sql`o.station_code = ${stationCode}`,
    type !== null && sql`o.observation_type = ${type}`,
    sql`o.observed_at < ${instantValue(toMs)}`,
    IS_HOT,
  ]
}
