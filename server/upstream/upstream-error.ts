// The error type for every failure of an upstream, in transfer or content. It always names the upstream, for log lines, metrics and
// status tables. It does not depend on HTTP libraries, so that pure parsers can throw it too.

/**
 * The kinds of failure.
 * - `unreachable`: no connection, or the connection broke before a response.
 * - `timeout`: no complete response within the timeout.
 * - `rate_limited`: status 429, or this client's request budget is used up for longer than a request may wait.
 * - `server_error`: status 5xx or 408.
 * - `rejected`: any other status that is not a success (3xx and 4xx): a retry will not help.
 * - `truncated`: the body ended early.
 * - `too_large`: the body is larger than the limit.
 * - `malformed`: the body is complete but does not match the upstream's documentation (garbage, a changed schema).
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

/** A failure of an upstream, also of a single attempt. The message begins with the upstream's name. */
export class UpstreamError extends Error {
  readonly upstream: string
  readonly failure: UpstreamFailure
  /** The HTTP status, if there was a response. */
  readonly status: number | null
  /** How long the upstream asked to wait, if it did. */
  readonly retryAfterMs: number | null

  constructor(
    upstream: string,
    failure: UpstreamFailure,
    detail: string,
    options: { status?: number; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(`${upstream}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'UpstreamError'
    this.upstream = upstream
    this.failure = failure
    this.status = options.status ?? null
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}
