// Why an attempt at an upstream has failed: by its status, by what undici throws, and for how long it asked to be left
// alone.

import type { Dispatcher } from 'undici'
import type { UpstreamFailure } from './upstream-error.ts'

/** A `Retry-After` beyond this is taken for a mistake of the upstream and cut to it. */
export const UPSTREAM_PAUSE_MS_MAX = 60 * 60 * 1000
/** Characters of a refusal's body that are quoted in an error. */
const UPSTREAM_QUOTE_CHARACTERS_MAX = 200

type Headers = Dispatcher.ResponseData['headers']

/** A failed attempt, before it is known whether another follows. */
export class AttemptFailure extends Error {
  readonly failure: UpstreamFailure
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined

  constructor(
    failure: UpstreamFailure,
    detail: string,
    options: { status?: number; retryAfterMs?: number | undefined; cause?: unknown } = {},
  ) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause })
    this.failure = failure
    this.status = options.status
    this.retryAfterMs = options.retryAfterMs
  }

  get isWorthRepeating(): boolean {
    return this.failure !== 'rejected' && this.failure !== 'too_large' && this.failure !== 'malformed'
  }
}

export function statusFailure(status: number, headers: Headers, body: Buffer, nowMs: number): AttemptFailure {
  const isBusy = status === 408 || status >= 500
  const failure = status === 429 ? 'rate_limited' : isBusy ? 'server_error' : 'rejected'
  const retryAfterMs = failure === 'rejected' ? undefined : readRetryAfterMs(headers, nowMs)
  const location = header(headers, 'location')
  const quote =
    location === null
      ? body
          .subarray(0, UPSTREAM_QUOTE_CHARACTERS_MAX)
          .toString('latin1')
          .replaceAll(/[^ -~]+/g, ' ')
          .trim()
      : `moved to ${location}`
  return new AttemptFailure(failure, quote === '' ? `status ${status}` : `status ${status}: ${quote}`, {
    status,
    retryAfterMs,
  })
}

/**
 * Seconds, or an HTTP date. A date is compared with the answer's own Date header where there is one, because the two
 * clocks may differ. A value that is neither is ignored.
 */
function readRetryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const value = header(headers, 'retry-after')
  if (value === null) return undefined
  const waitMs = /^\d+$/.test(value)
    ? Number(value) * 1000
    : Date.parse(value) - dateOr(header(headers, 'date'), nowMs)
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), UPSTREAM_PAUSE_MS_MAX)
}

function dateOr(value: string | null, otherwiseMs: number): number {
  const ms = value === null ? Number.NaN : Date.parse(value)
  return Number.isNaN(ms) ? otherwiseMs : ms
}

export function header(headers: Headers, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : (value?.[0] ?? null)
}

export function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Sockets, name resolution (`EAI_AGAIN`: no answer for now), the HTTP parser, TLS, and certificates that are not trusted. */
const TRANSPORT_CODE =
  /^(UND_ERR_SOCKET|E[A-Z]+|EAI_[A-Z]+|HPE_[A-Z_]+|ERR_(TLS|SSL)_.*|CERT_.*|UNABLE_TO_.*|(DEPTH_ZERO_)?SELF_SIGNED_CERT.*)$/

/** Translates what undici throws. Anything unexpected stays what it is: a fault of ours must not look like theirs. */
export function attemptFailure(error: unknown): unknown {
  if (error instanceof AttemptFailure) return error
  const code = errorCode(error)
  const detail = error instanceof Error && error.message !== '' ? error.message : code
  switch (code) {
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
      return new AttemptFailure('too_large', 'the body is larger than the bound', { cause: error })
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return new AttemptFailure('truncated', detail, { cause: error })
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return new AttemptFailure('timeout', detail, { cause: error })
    case 'UND_ERR_HEADERS_OVERFLOW':
      return new AttemptFailure('malformed', detail, { cause: error })
    default:
  }
  return TRANSPORT_CODE.test(code) ? new AttemptFailure('unreachable', detail, { cause: error }) : error
}
