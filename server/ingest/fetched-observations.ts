// Rows fetched by a client of observations → the result of a step.

import type { Observation } from '../../shared/observation.ts'
import type { TimeWindow } from '../storage/cursor-store.ts'
import { writeObservations } from '../storage/observation-store.ts'
import { withoutFuture } from './future-reports.ts'
import type { ObservationRows } from './observation-fetch.ts'
import { mergeObservation, type MergedObservation } from './observation-precedence.ts'
import type { FetchedRows } from './source.ts'

/** Rows of a fetch; none if nothing has changed. */
export function toldRows(fetched: ObservationRows | null, nowMs: number) {
  if (fetched === null) return { rows: [], problems: [], aheadCount: 0 }
  const { malformed, other_station } = fetched.rejected
  const problems: string[] = []
  if (malformed > 0) problems.push(`${malformed} reports cannot be read`)
  if (other_station > 0) problems.push(`${other_station} reports of stations that were not asked for`)
  const { told, aheadCount, ...byTime } = withoutFuture(
    fetched.rows,
    ({ observed_at }) => observed_at,
    ({ station_code, observation_type }) => `${station_code} ${observation_type}`,
    nowMs,
  )
  problems.push(...byTime.problems)
  return { rows: told, problems, aheadCount }
}

/** The rows as a step's result. Several reports of one observation are merged by the rules of precedence. */
export function fetchedObservations(
  rows: readonly Observation[],
  problems: readonly string[],
  completed: TimeWindow | null,
): FetchedRows {
  const records = rows.map((observation): MergedObservation => ({ observation, filled: {} }))
  return {
    write: (transaction) => writeObservations(transaction, records, mergeObservation),
    problems,
    completed,
  }
}
