// HTTP to one upstream, as every ingest client needs it: a budget of requests, bounded repetitions with jitter,
// Retry-After, a time-out and a size bound per attempt, conditional requests, gzip. It returns whole bodies, because
// every upstream's answers are small enough and a half-received body must never be parsed. It does not follow
// redirects (a moved route should be noticed, not hidden) and knows nothing of what the bodies mean.

import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { Agent, type Dispatcher } from 'undici'
import { UPSTREAM_BODY_BYTES_MAX_DEFAULT, UPSTREAM_BUDGET_WAIT_MS_MAX } from '../../shared/limits.ts'
import { backOffMs, UPSTREAM_BACK_OFF } from '../tasks/back-off.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { RequestBudget, type RequestRate } from './request-budget.ts'
import { UpstreamError, type UpstreamFailure } from './upstream-error.ts'

/** Requests made for one answer of an upstream: the first and its repetitions. */
export const UPSTREAM_ATTEMPTS_MAX = 4
/** One attempt, from the first byte sent to the last byte received. */
const UPSTREAM_TIMEOUT_MS_DEFAULT = 20_000
/** A longer `Retry-After` is not waited for inside a request but reported, so that the schedule can plan with it. */
export const UPSTREAM_RETRY_AFTER_MS_MAX = 60_000
/** A `Retry-After` beyond this is taken for a mistake of the upstream and cut to it. */
export const UPSTREAM_PAUSE_MS_MAX = 60 * 60 * 1000
/** Connections to one upstream. */
const UPSTREAM_CONNECTIONS_MAX = 4
/** Characters of a refusal's body that are quoted in an error. */
const UPSTREAM_QUOTE_CHARACTERS_MAX = 200

export interface UpstreamOptions {
  /** The name that stands in every error, for example `awc`. */
  readonly name: string
  /** Scheme, host and optional path prefix; request paths are appended to it. */
  readonly baseUrl: string
  /** Sent as User-Agent: several upstreams refuse anonymous clients. */
  readonly userAgent: string
  readonly rate: RequestRate
  /** Used instead of a budget of its own: clients of different services of one host share what that host allows. */
  readonly budget?: RequestBudget
  readonly timeoutMs?: number
  readonly bodyBytesMax?: number
  readonly attemptsMax?: number
  readonly clock?: Clock
  /** A number in [0, 1), for the jitter. */
  readonly random?: () => number
}

/** What an answer said about its version; given back, it makes the next request conditional. */
export interface Validators {
  readonly etag: string | null
  readonly lastModified: string | null
}

export interface UpstreamRequest {
  /** Path and query, beginning with `/`. */
  readonly path: string
  /** Requests are repeated on failure, so only what is safe to repeat may be asked with POST. */
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly validators?: Validators
  readonly signal?: AbortSignal
}

/** A success (status 2xx; the body of a 204 is empty), decompressed. */
export interface UpstreamBody {
  readonly kind: 'body'
  readonly status: number
  readonly body: Buffer
  readonly contentType: string | null
  readonly validators: Validators
  readonly attempts: number
}

/** Status 304 to a conditional request. */
export interface UpstreamNotModified {
  readonly kind: 'not_modified'
  readonly attempts: number
}

export type UpstreamAnswer = UpstreamBody | UpstreamNotModified

type Headers = Dispatcher.ResponseData['headers']

const gunzipBytes = promisify(gunzip)

/** A failed attempt, before it is known whether another follows. */
class AttemptFailure extends Error {
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

/** A client of one upstream. */
export class UpstreamHttp {
  readonly name: string
  readonly #options: UpstreamOptions
  readonly #clock: Clock
  readonly #budget: RequestBudget
  readonly #agent: Agent
  readonly #origin: string
  readonly #prefix: string

  constructor(options: UpstreamOptions) {
    const base = new URL(options.baseUrl)
    this.name = options.name
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#budget = options.budget ?? new RequestBudget(options.rate)
    this.#origin = base.origin
    this.#prefix = base.pathname.replace(/\/$/, '')
    const timeoutMs = options.timeoutMs ?? UPSTREAM_TIMEOUT_MS_DEFAULT
    this.#agent = new Agent({
      connections: UPSTREAM_CONNECTIONS_MAX,
      connect: { timeout: timeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxResponseSize: options.bodyBytesMax ?? UPSTREAM_BODY_BYTES_MAX_DEFAULT,
    })
  }

  /**
   * Asks until there is an answer or the attempts are used up. Throws `UpstreamError`, or the signal's reason when the
   * caller aborts.
   */
  async fetch(request: UpstreamRequest): Promise<UpstreamAnswer> {
    const attemptsMax = this.#options.attemptsMax ?? UPSTREAM_ATTEMPTS_MAX
    for (let attempts = 1; ; attempts += 1) {
      await this.#awaitTurn(request.signal, attempts - 1)
      try {
        return await this.#attempt(request, attempts)
      } catch (error) {
        request.signal?.throwIfAborted()
        if (!(error instanceof AttemptFailure)) throw error
        const waitMs = this.#waitBeforeNext(error, attempts)
        const isLast = attempts >= attemptsMax || !error.isWorthRepeating
        if (isLast || waitMs > UPSTREAM_RETRY_AFTER_MS_MAX) throw this.#giveUp(error, attempts)
        await this.#clock.sleep(waitMs, request.signal)
      }
    }
  }

  /** Closes the connections; a running request fails. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  async #awaitTurn(signal: AbortSignal | undefined, attemptsSoFar: number): Promise<void> {
    signal?.throwIfAborted()
    const waitMs = this.#budget.reserve(this.#clock.nowMs(), UPSTREAM_BUDGET_WAIT_MS_MAX)
    if (waitMs === undefined) {
      throw new UpstreamError(
        this.name,
        'rate_limited',
        `the own request budget is used up for more than ${UPSTREAM_BUDGET_WAIT_MS_MAX} ms`,
        { attempts: attemptsSoFar },
      )
    }
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal)
  }

  /** Exponential, half of it jitter, or what the upstream asked for; the latter also holds for every other request. */
  #waitBeforeNext(failure: AttemptFailure, attempts: number): number {
    const pauseMs = backOffMs(UPSTREAM_BACK_OFF, attempts, this.#options.random)
    const waitMs = Math.max(failure.retryAfterMs ?? 0, pauseMs)
    if (failure.failure === 'rate_limited' || failure.retryAfterMs !== undefined) {
      this.#budget.pause(this.#clock.nowMs() + waitMs)
    }
    return waitMs
  }

  #giveUp(failure: AttemptFailure, attempts: number): UpstreamError {
    return new UpstreamError(this.name, failure.failure, failure.message, {
      ...(failure.status === undefined ? {} : { status: failure.status }),
      ...(failure.retryAfterMs === undefined ? {} : { retryAfterMs: failure.retryAfterMs }),
      attempts,
      cause: failure.cause ?? failure,
    })
  }

  async #attempt(request: UpstreamRequest, attempts: number): Promise<UpstreamAnswer> {
    const timeoutMs = this.#options.timeoutMs ?? UPSTREAM_TIMEOUT_MS_DEFAULT
    const controller = new AbortController()
    const abort = (): void => controller.abort(request.signal?.reason)
    const timer = setTimeout(() => {
      controller.abort(new AttemptFailure('timeout', `no complete answer within ${timeoutMs} ms`))
    }, timeoutMs)
    request.signal?.addEventListener('abort', abort, { once: true })
    try {
      const response = await this.#agent.request({
        origin: this.#origin,
        path: this.#prefix + request.path,
        method: request.method ?? 'GET',
        headers: this.#requestHeaders(request),
        body: request.body ?? null,
        signal: controller.signal,
      })
      return await this.#readAnswer(response, request, attempts)
    } catch (error) {
      throw attemptFailure(error)
    } finally {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', abort)
    }
  }

  #requestHeaders(request: UpstreamRequest): Record<string, string> {
    const { etag = null, lastModified = null } = request.validators ?? {}
    return {
      'user-agent': this.#options.userAgent,
      'accept-encoding': 'gzip',
      ...request.headers,
      ...(etag === null ? {} : { 'if-none-match': etag }),
      ...(lastModified === null ? {} : { 'if-modified-since': lastModified }),
    }
  }

  async #readAnswer(
    response: Dispatcher.ResponseData,
    request: UpstreamRequest,
    attempts: number,
  ): Promise<UpstreamAnswer> {
    const { statusCode: status, headers, body } = response
    if (status === 304 && request.validators !== undefined) {
      await body.dump()
      return { kind: 'not_modified', attempts }
    }
    const received = await receiveBody(body)
    if (status < 200 || status > 299) {
      throw statusFailure(status, headers, received, this.#clock.nowMs())
    }
    return {
      kind: 'body',
      status,
      body: await this.#decompress(received, header(headers, 'content-encoding')),
      contentType: header(headers, 'content-type'),
      validators: { etag: header(headers, 'etag'), lastModified: header(headers, 'last-modified') },
      attempts,
    }
  }

  async #decompress(received: Buffer, encoding: string | null): Promise<Buffer> {
    if (encoding === null || encoding.toLowerCase() === 'identity' || received.length === 0) return received
    if (!/^(x-)?gzip$/i.test(encoding)) {
      throw new AttemptFailure('malformed', `content-encoding ${encoding} was not asked for`)
    }
    return await gunzipBody(received, this.#options.bodyBytesMax ?? UPSTREAM_BODY_BYTES_MAX_DEFAULT)
  }
}

async function receiveBody(body: Dispatcher.ResponseData['body']): Promise<Buffer> {
  try {
    return Buffer.from(await body.arrayBuffer())
  } catch (error) {
    const failure = attemptFailure(error)
    if (!(failure instanceof AttemptFailure) || failure.failure !== 'unreachable') throw failure
    throw new AttemptFailure('truncated', `the body ends early: ${failure.message}`, { cause: error })
  }
}

async function gunzipBody(received: Buffer, bytesMax: number): Promise<Buffer> {
  try {
    return await gunzipBytes(received, { maxOutputLength: bytesMax })
  } catch (error) {
    const code = errorCode(error)
    if (code === 'ERR_BUFFER_TOO_LARGE') {
      throw new AttemptFailure('too_large', `the body is larger than ${bytesMax} bytes`, { cause: error })
    }
    const isCut = code === 'Z_BUF_ERROR'
    throw new AttemptFailure(
      isCut ? 'truncated' : 'malformed',
      isCut ? 'the gzip body ends early' : 'the body is no valid gzip',
      { cause: error },
    )
  }
}

function statusFailure(status: number, headers: Headers, body: Buffer, nowMs: number): AttemptFailure {
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

function header(headers: Headers, name: string): string | null {
  const value = headers[name]
  return typeof value === 'string' ? value : (value?.[0] ?? null)
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

/** Sockets, name resolution (`EAI_AGAIN`: no answer for now), the HTTP parser, TLS, and certificates that are not trusted. */
const TRANSPORT_CODE =
  /^(UND_ERR_SOCKET|E[A-Z]+|EAI_[A-Z]+|HPE_[A-Z_]+|ERR_(TLS|SSL)_.*|CERT_.*|UNABLE_TO_.*|(DEPTH_ZERO_)?SELF_SIGNED_CERT.*)$/

/** Translates what undici throws. Anything unexpected stays what it is: a fault of ours must not look like theirs. */
function attemptFailure(error: unknown): unknown {
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
