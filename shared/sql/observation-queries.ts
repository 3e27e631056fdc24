// The hot half of `/observations`: statements over the reports in the relational store. The caller
// converts units and time zones.

import { type Observation, OBSERVATION_FIELDS, type ObservationType } from '../observation.ts'
import { hotRows } from './hot-rows.ts'
import { instantValue, sql } from './statement.ts'
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

/** Null is no condition. */
export interface ObservationSelection {
  readonly stationCode: string | null
  readonly type: ObservationType | null
}

/** The primary key in the order of the answer. */
export interface ObservationKey {
  readonly observedMs: number
  readonly stationCode: string
  readonly type: string
}

/** By (observed_at, station_code, observation_type). */
export const { read: plannedObservationRead, count: observationCount } = hotRows<
  ObservationSelection,
  StoredObservation,
  ObservationKey
>({
  dataset: 'observations',
  columns: STORED_OBSERVATION_COLUMNS,
  scope: 'station_code',
  instant: 'observed_at',
  order: ['observed_at', 'station_code', 'observation_type'],
  conditionsOf: ({ stationCode, type }) => [
    stationCode !== null && sql`station_code = ${stationCode}`,
    type !== null && sql`observation_type = ${type}`,
  ],
  keyOf: (row) => ({
    observedMs: row.observed_at,
    stationCode: row.station_code,
    type: row.observation_type,
  }),
  valuesOf: ({ observedMs, stationCode, type }) => sql`${instantValue(observedMs)}, ${stationCode}, ${type}`,
})
