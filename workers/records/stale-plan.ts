// Plans go out of date when rows move to the lake or a file is replaced while an answer is read. Then it is planned anew.

import { ApiError, type ErrorCode } from '../../shared/errors.ts'
import { ManifestChanged } from '../../shared/sql/manifest-queries.ts'

/** What goes wrong with a file when the manifest that named it is an old one. */
const STALE = new Set<ErrorCode>(['lake_file_changed', 'lake_file_invalid', 'lake_file_outdated'])

/** Whether an attempt failed because its plan was out of date. */
export function isPlanStale(error: unknown): boolean {
  if (error instanceof ManifestChanged) return true
  return error instanceof ApiError && STALE.has(error.code)
}

/** What a client is told of rows that moved too often. */
export function movedError(noun: string, error: unknown): unknown {
  if (!(error instanceof ManifestChanged)) return error
  return new ApiError('lake_file_changed', `${noun} moved to the lake again and again while they were read.`)
}
