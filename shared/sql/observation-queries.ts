// The hot half of `/observations`: statements over the reports that Postgres holds. As for candles, what the manifest
// declares cold is left out here. Unit conversion and time zones are the caller's.

import type { Observation, ObservationType } from '../observation.ts'
import { countOutside, type CoveredSpan } from './covered-spans.ts'
import type { BatchStart, KeysetRead } from './keyset-pages.ts'
import { generationColumn, type WithGeneration } from './manifest-queries.ts'
import { type SqlStatement, StatementBuilder } from './statement.ts'

/** Every column of an observation as it is stored: name and SQL type. Instants are milliseconds since the epoch. */
export const STORED_OBSERVATION_COLUMNS = {
  station_code: 'text',
  observed_at: 'timestamptz',
  received_at: 'timestamptz',
  observation_type: 'text',
  source: 'text',
  temp_f: 'float8',
  dewpoint_f: 'float8',
  wind_speed_kt: 'float8',
  altimeter_inhg: 'float8',
  visibility_miles: 'float8',
  sky_cover_1: 'text',
  raw_metar: 'text',
  relative_humidity: 'float8',
  wind_dir_degrees: 'int4',
  wind_gust_kt: 'float8',
  sea_level_pressure_mb: 'float8',
  weather_codes: 'text',
  sky_base_1_ft: 'int4',
  sky_cover_2: 'text',
  sky_base_2_ft: 'int4',
  sky_cover_3: 'text',
  sky_base_3_ft: 'int4',
  sky_cover_4: 'text',
  sky_base_4_ft: 'int4',
  precip_1hr_inches: 'float8',
  snow_depth_inches: 'float8',
  peak_wind_speed_kt: 'float8',
  peak_wind_dir_degrees: 'int4',
  peak_wind_time: 'timestamptz',
  feels_like_f: 'float8',
  max_temp_6hr_f: 'float8',
  min_temp_6hr_f: 'float8',
  max_temp_24hr_f: 'float8',
  min_temp_24hr_f: 'float8',
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

const COUNTED = { from: 'observations o', scope: 'o.station_code', instant: 'o.observed_at' }
const COLUMNS = Object.keys(STORED_OBSERVATION_COLUMNS).join(', ')
// By the whole key of the one partition that an observation can belong to, a year of its station.
const IS_HOT =
  `NOT EXISTS (SELECT FROM lake_manifest p WHERE p.dataset = 'observations' AND p.scope = o.station_code` +
  ` AND p.period_start = date_trunc('year', o.observed_at, 'UTC') AND o.observed_at < p.cut_over)`

/**
 * The observations of a range by (observed_at, station_code, observation_type), each with the generation of the manifest
 * that it was read under.
 */
export function plannedObservationRead(
  selection: ObservationSelection,
): KeysetRead<StoredObservation & WithGeneration, ObservationKey> {
  const columns = `${COLUMNS}, ${generationColumn('observations')}`
  return { statementFor: (start) => rangeStatement(selection, start, columns), keyOf: observationKey }
}

function observationKey(row: StoredObservation): ObservationKey {
  return { observedMs: row.observed_at, stationCode: row.station_code, type: row.observation_type }
}

/** One row with `rows`: how many observations there are outside the covered spans, counted up to `countMax`. */
export function observationCount(
  selection: ObservationSelection,
  covered: readonly CoveredSpan[],
  countMax: number,
): SqlStatement {
  const statement = selected(selection)
  statement.where(`o.observed_at >= ${statement.addInstant(selection.fromMs)}`)
  return countOutside(statement, COUNTED, covered, countMax)
}

function rangeStatement(
  selection: ObservationSelection,
  start: BatchStart<ObservationKey>,
  columns: string,
): SqlStatement {
  const statement = selected(selection)
  if (start.key === null) {
    statement.where(`o.observed_at >= ${statement.addInstant(selection.fromMs)}`)
  } else {
    const { observedMs, stationCode, type } = start.key
    const after = [
      statement.addInstant(observedMs),
      statement.add(stationCode, 'text'),
      statement.add(type, 'text'),
    ]
    statement.where(`(o.observed_at, o.station_code, o.observation_type) > (${after.join(', ')})`)
  }
  return statement.build(
    `SELECT ${columns} FROM observations o ${statement.whereClause}` +
      ` ORDER BY o.observed_at, o.station_code, o.observation_type` +
      ` LIMIT ${statement.add(start.limit, 'int8')} OFFSET ${statement.add(start.offset, 'int8')}`,
  )
}

/** The selection's conditions but the lower bound, which a later batch replaces by its key. */
function selected(selection: ObservationSelection): StatementBuilder {
  const statement = new StatementBuilder()
  if (selection.stationCode !== null) {
    statement.where(`o.station_code = ${statement.add(selection.stationCode, 'text')}`)
  }
  if (selection.type !== null) {
    statement.where(`o.observation_type = ${statement.add(selection.type, 'text')}`)
  }
  return statement.where(`o.observed_at < ${statement.addInstant(selection.toMs)}`).where(IS_HOT)
}
