// The one error type of everything that comes from an upstream, whether the transfer or the content failed. It always
// names the upstream, so that a log line, a metric or a status table can. It knows nothing of HTTP libraries, so that
// the pure parsers can throw it too.

/**
 * What went wrong.
 * - `unreachable`: no connection, or the connection broke before an answer.
 * - `timeout`: no complete answer within the time-out.
 * - `rate_limited`: status 429, or the own request budget is used up for longer than a request may wait.
 * - `server_error`: status 5xx or 408.
 * - `rejected`: any other status that is no success (3xx and 4xx): asking again will not help.
 * - `truncated`: the body ended early.
 * - `too_large`: the body is larger than the bound.
 * - `malformed`: the body is complete but is not what the upstream documents (garbage, a changed schema).
 */
export type UpstreamFailure =
  | 'unreachable'
  | 'timeout'
  | 'rate_limited'
  | 'server_error'
  | 'rejected'
  | 'truncated'
  | 'too_large'
  | 'malformed'

/** A failure of an upstream. The message begins with the upstream's name. */
export class UpstreamError extends Error {
  readonly upstream: string
  readonly failure: UpstreamFailure
  /** The HTTP status, when there was an answer. */
  readonly status: number | null
  /** How long the upstream asked to be left alone, when it said so. */
  readonly retryAfterMs: number | null
  /** Requests made before giving up; 0 when the failure lies in a body that was already there. */
  readonly attempts: number

  constructor(
    upstream: string,
    failure: UpstreamFailure,
    detail: string,
    options: { status?: number; retryAfterMs?: number; attempts?: number; cause?: unknown } = {},
  ) {
    super(`${upstream}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'UpstreamError'
    this.upstream = upstream
    this.failure = failure
    this.status = options.status ?? null
    this.retryAfterMs = options.retryAfterMs ?? null
    this.attempts = options.attempts ?? 0
  }
}
