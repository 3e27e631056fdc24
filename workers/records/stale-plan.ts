// Plans go out of date when rows move to the lake or a file is replaced while an answer is read. Then it is planned anew.

import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { RECORD_PLAN_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { ManifestChanged } from '../../shared/sql/manifest-queries.ts'

/** What goes wrong with a file when the manifest that named it is an old one. */
const STALE = new Set<ErrorCode>(['lake_file_changed', 'lake_file_invalid', 'lake_file_outdated'])

/**
 * Forgets a plan that an attempt failed with because it was out of date, so that the caller plans anew.
 * @param noun names the rows in the error for a client whose rows moved too often
 * @param forget forgets what the plan was made of
 * @throws what any other attempt failed with, and the last one
 */
export function forgetStalePlan(error: unknown, attempt: number, noun: string, forget: () => void): void {
  const hasMoved = error instanceof ManifestChanged
  if (!hasMoved && !(error instanceof ApiError && STALE.has(error.code))) throw error
  forget()
  if (attempt < RECORD_PLAN_ATTEMPTS_MAX) return
  if (!hasMoved) throw error
  throw new ApiError('lake_file_changed', `${noun} moved to the lake again and again while they were read.`)
}
