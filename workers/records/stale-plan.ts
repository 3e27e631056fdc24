// A plan becomes stale if rows move to the lake or a file is replaced while the answer is read. Then the answer is planned again.

import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { RECORD_PLAN_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { ManifestChanged } from '../../shared/sql/manifest-queries.ts'

/** The errors of a file that may come from an old manifest. */
const STALE = new Set<ErrorCode>(['lake_file_changed', 'lake_file_invalid', 'lake_file_outdated'])

/**
 * Returns if the error comes from a stale plan, after clearing its caches, so that the caller plans again.
 * @param noun names the rows in the error of a request whose rows moved too often
 * @param forget clears the caches that the plan was made from
 * @throws any other error, and at the last attempt also this one
 */
export function forgetStalePlan(error: unknown, attempt: number, noun: string, forget: () => void): void {
  const hasMoved = error instanceof ManifestChanged
  if (!hasMoved && !(error instanceof ApiError && STALE.has(error.code))) throw error
  forget()
  if (attempt < RECORD_PLAN_ATTEMPTS_MAX) return
  if (!hasMoved) throw error
  throw new ApiError('lake_file_changed', `${noun} moved to the lake again and again while they were read.`)
}

/**
 * Gives the answer, and plans it again while its plan is stale. An answer that streams its rows is planned again only before its
 * first row.
 * @param noun names the rows in the error of a request whose rows moved too often
 * @param forget clears the caches that the plan was made from
 */
export async function withFreshPlan<T>(
  noun: string,
  forget: () => void,
  answer: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await answer()
    } catch (error) {
      forgetStalePlan(error, attempt, noun, forget)
    }
  }
}
