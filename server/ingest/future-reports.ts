// Reports with a time in the future by the collector's clock. An upstream with a wrong clock, or a damaged date, must not be stored
// as past weather. Such reports are refused, counted and named, and accepted if they are still reported at their time.

import { MS_PER_HOUR, MS_PER_MINUTE } from '../../shared/utc-date.ts'

/** Clocks differ by minutes, and a routine report is dated and sent a few minutes early. */
export const AHEAD_MS_MAX = MS_PER_HOUR / 4

/** Separates reports from those that are further ahead of the clock than clocks differ. */
export function withoutFuture<T>(
  reports: readonly T[],
  instantOf: (report: T) => number,
  nameOf: (report: T) => string,
  nowMs: number,
) {
  const isAhead = (report: T): boolean => instantOf(report) > nowMs + AHEAD_MS_MAX
  const ahead = reports.filter(isAhead)
  const [first] = ahead
  if (first === undefined) return { told: reports, aheadCount: 0, problems: [] }
  const instant = new Date(instantOf(first)).toISOString().slice(0, 16)
  const minutes = Math.round((instantOf(first) - nowMs) / MS_PER_MINUTE)
  return {
    told: reports.filter((report) => !isAhead(report)),
    /** The refused ones; their file or response must be requested again. */
    aheadCount: ahead.length,
    /** One message for all of them. */
    problems: [
      `${ahead.length} reports lie in the future and are refused, first ${nameOf(first)} of ${instant}Z, ` +
        `${minutes} minutes ahead of this clock`,
    ],
  }
}
