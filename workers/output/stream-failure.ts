// Makes the last message of a request from an error: the text for the client (ApiError), or a stack trace for the log.

import { ApiError } from '../../shared/errors.ts'
import type { StreamFailure } from '../../shared/stream-task.ts'

export function failureOf(error: unknown): StreamFailure {
  if (error instanceof ApiError) {
    return { kind: 'error', code: error.code, detail: error.message, errors: error.errors }
  }
  const cause = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { kind: 'error', code: 'internal_error', detail: cause, errors: [] }
}
