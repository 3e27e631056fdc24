// Why an attempt failed: by its status or by the error that undici throws. Also how long the upstream asked to wait.

import type { Dispatcher } from 'undici'
import { UpstreamError } from './upstream-error.ts'

/** A larger `Retry-After` is taken for a mistake and reduced to this. */
export const UPSTREAM_PAUSE_MS_MAX = 60 * 60 * 1000
/** Characters of an error response's body that an error quotes. */
const UPSTREAM_QUOTE_CHARACTERS_MAX = 200

type Headers = Dispatcher.ResponseData['headers']

export function statusFailure(
  upstream: string,
  status: number,
  headers: Headers,
  body: Buffer,
  nowMs: number,
): UpstreamError {
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
  const detail = quote === '' ? `status ${status}` : `status ${status}: ${quote}`
  return new UpstreamError(upstream, failure, detail, { status, retryAfterMs })
}

/**
 * Seconds, or an HTTP date. A date is compared with the response's own Date header if there is one, because the two clocks may
 * differ. Any other value is ignored: `Date.parse` would take `1.5` for a day in 2001, and a date without a zone for local time.
 */
function readRetryAfterMs(headers: Headers, nowMs: number): number | undefined {
  const value = header(headers, 'retry-after')
  if (value === null || !/^\d+(\.\d+)?$| GMT$/.test(value)) return undefined
  const waitMs = value.endsWith('GMT')
    ? Date.parse(value) - dateOr(header(headers, 'date'), nowMs)
    : Number(value) * 1000
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

export function detailOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : errorCode(error)
}

/** Sockets, name resolution (`EAI_AGAIN`: temporary failure), the HTTP parser, TLS, and untrusted certificates. */
const TRANSPORT_CODE =
  /^(UND_ERR_SOCKET|E[A-Z]+|EAI_[A-Z]+|HPE_[A-Z_]+|ERR_(TLS|SSL)_.*|CERT_.*|UNABLE_TO_.*|(DEPTH_ZERO_)?SELF_SIGNED_CERT.*)$/

/** Translates undici's errors. Other errors stay as they are: a bug here must not look like an upstream's failure. */
export function transferFailure(upstream: string, error: unknown): unknown {
  if (error instanceof UpstreamError) return error
  const code = errorCode(error)
  const detail = detailOf(error)
  switch (code) {
    case 'UND_ERR_RES_EXCEEDED_MAX_SIZE':
      return new UpstreamError(upstream, 'too_large', 'the body is larger than the bound', { cause: error })
    case 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH':
      return new UpstreamError(upstream, 'truncated', detail, { cause: error })
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return new UpstreamError(upstream, 'timeout', detail, { cause: error })
    case 'UND_ERR_HEADERS_OVERFLOW':
      return new UpstreamError(upstream, 'malformed', detail, { cause: error })
    default:
  }
  return TRANSPORT_CODE.test(code)
    ? new UpstreamError(upstream, 'unreachable', detail, { cause: error })
    : error
}
