// Plans go out of date when rows move to the lake or a file is replaced while an answer is read. Then it is planned anew.

import { ApiError } from '../../shared/errors.ts'
import { ManifestChanged } from '../../shared/sql/manifest-queries.ts'

/** Whether an attempt failed because its plan was out of date. */
export function isPlanStale(error: unknown): boolean {
  if (error instanceof ManifestChanged) return true
  // An old manifest may name a file that compaction has replaced since.
  return (
    error instanceof ApiError && (error.code === 'lake_file_changed' || error.code === 'lake_file_invalid')
  )
}

/** What a client is told of rows that moved too often. */
export function movedError(noun: string, error: unknown): unknown {
  if (!(error instanceof ManifestChanged)) return error
  return new ApiError('lake_file_changed', `${noun} moved to the lake again and again while they were read.`)
}
