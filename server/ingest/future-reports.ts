// Reports of a time that has not come yet, by the collector's own clock. An upstream whose clock is wrong, or a damaged
// date, must not be stored as what the weather was: such reports are refused, counted and named, and taken when they are
// still told at their time.

import { MS_PER_HOUR } from '../../shared/utc-date.ts'

/** Clocks differ by minutes, and a routine report is dated and sent a few minutes early. */
export const AHEAD_MS_MAX = MS_PER_HOUR / 4

export interface SortedByTime<T> {
  readonly told: readonly T[]
  readonly ahead: readonly T[]
  /** One complaint for all of the latter; none without any. */
  readonly problems: readonly string[]
}

/** Parts reports that are told in time from those that lie further ahead of the clock than clocks differ. */
export function withoutFuture<T>(
  reports: readonly T[],
  instantOf: (report: T) => number,
  nameOf: (report: T) => string,
  nowMs: number,
): SortedByTime<T> {
  const isAhead = (report: T): boolean => instantOf(report) > nowMs + AHEAD_MS_MAX
  const ahead = reports.filter(isAhead)
  const [first] = ahead
  if (first === undefined) return { told: reports, ahead, problems: [] }
  const instant = new Date(instantOf(first)).toISOString().slice(0, 16)
  const minutes = Math.round((instantOf(first) - nowMs) / 60_000)
  return {
    told: reports.filter((report) => !isAhead(report)),
    ahead,
    problems: [
      `${ahead.length} reports lie in the future and are refused, first ${nameOf(first)} of ${instant}Z, ` +
        `${minutes} minutes ahead of this clock`,
    ],
  }
}
