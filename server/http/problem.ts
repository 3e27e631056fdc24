// Error answers: RFC 9457 problem+json with additional members (contract.md 10). The text of an unexpected exception never
// leaves the process: the client gets a request id, and the log has the text.

import { ApiError, ERROR_TYPES } from '../../shared/errors.ts'
import type { WholeReply } from './endpoint.ts'

const UNEXPECTED =
  'The request failed unexpectedly. The log of the server has the cause under this request_id.'

/** The answer for anything thrown while a request was handled. */
export function problemReply(thrown: unknown, requestId: string): WholeReply {
  // The text of an internal error must not be sent.
  const isForClients = thrown instanceof ApiError && thrown.code !== 'internal_error'
  const error = isForClients ? thrown : new ApiError('internal_error', UNEXPECTED)
  const body = {
    type: `urn:bookcast:problem:${error.code}`,
    title: ERROR_TYPES[error.code].title,
    status: error.status,
    detail: error.message,
    code: error.code,
    errors: error.errors,
    request_id: requestId,
    error: error.message,
  }
  return {
    status: error.status,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      ...error.headers,
    },
    body: new TextEncoder().encode(JSON.stringify(body)),
  }
}
