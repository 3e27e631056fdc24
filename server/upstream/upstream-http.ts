// HTTP to one upstream, as every ingest client needs it: a request budget, bounded retries with jitter, Retry-After, a timeout and
// a size limit per attempt, conditional requests, gzip. It returns whole bodies: responses are small enough, and an incomplete body
// must never be parsed. It does not follow redirects (a moved route should be noticed) and does not interpret bodies.

import { Agent, type Dispatcher } from 'undici'
import { UPSTREAM_BODY_BYTES_MAX_DEFAULT, UPSTREAM_BUDGET_WAIT_MS_MAX } from '../../shared/limits.ts'
import { isJsonObject, type JsonObject } from '../../shared/parsed-json.ts'
import { backOffMs, UPSTREAM_BACK_OFF } from '../tasks/back-off.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { decoded, receiveBody } from './answer-body.ts'
import { header, statusFailure, transferFailure } from './attempt-failure.ts'
import { RequestBudget, type RequestRate } from './request-budget.ts'
import { UpstreamError, type UpstreamFailure } from './upstream-error.ts'

/** Attempts of one request: the first and its retries. */
export const UPSTREAM_ATTEMPTS_MAX = 4
/** Timeout of one attempt, from the first byte sent to the last byte received. */
const UPSTREAM_TIMEOUT_MS_DEFAULT = 20_000
/** A longer `Retry-After` is not awaited within a request but reported, so that the schedule can plan with it. */
export const UPSTREAM_RETRY_AFTER_MS_MAX = 60_000
/** Connections to one upstream. */
const UPSTREAM_CONNECTIONS_MAX = 4
/** Failures that would occur again. */
const PERMANENT: ReadonlySet<UpstreamFailure> = new Set(['rejected', 'too_large', 'malformed'])

export interface UpstreamOptions {
  /** The name in every error, for example `awc`. */
  readonly name: string
  /** Scheme, host and optional path prefix; request paths are appended to it. */
  readonly baseUrl: string
  /** Sent as User-Agent: several upstreams refuse requests without one. */
  readonly userAgent: string
  readonly rate: RequestRate
  /** Replaces the client's own budget: clients of different services of one host share that host's limit. */
  readonly budget?: RequestBudget
  readonly timeoutMs?: number
  readonly bodyBytesMax?: number
  readonly attemptsMax?: number
  readonly clock?: Clock
  /** A number in [0, 1), for the jitter. */
  readonly random?: () => number
}

/** For a client that sets its own name and rate. */
export type ClientOptions = Omit<UpstreamOptions, 'name' | 'rate'>

/** The validators of a response; they make the next request conditional. */
export interface Validators {
  readonly etag: string | null
  readonly lastModified: string | null
}

export interface UpstreamRequest {
  /** Path and query, beginning with `/`. */
  readonly path: string
  /** Failed requests are retried, so use POST only for requests that are safe to repeat. */
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly validators?: Validators | undefined
  readonly signal?: AbortSignal | undefined
}

/** A success (status 2xx; the body of a 204 is empty), decompressed. */
export interface UpstreamAnswer {
  readonly status: number
  readonly body: Buffer
  readonly validators: Validators
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

  /** Sends a request without validators. Any response without a body is an `UpstreamError`. */
  async fetchBody(request: Omit<UpstreamRequest, 'validators'>): Promise<Buffer> {
    const answer = await this.fetch(request)
    if (answer !== null) return answer.body
    throw this.malformed('status 304 to an unconditional request')
  }

  /** The same for a JSON response. */
  async fetchJson(request: Omit<UpstreamRequest, 'validators'>): Promise<unknown> {
    return this.readJson(await this.fetchBody(request))
  }

  /** The same for a JSON object. */
  async fetchObject(request: Omit<UpstreamRequest, 'validators'>): Promise<JsonObject> {
    return this.readObject(await this.fetchBody(request))
  }

  readObject(body: Buffer): JsonObject {
    const value = this.readJson(body)
    if (isJsonObject(value)) return value
    throw this.malformed('the answer is no JSON object')
  }

  readJson(body: Buffer): unknown {
    try {
      return JSON.parse(body.toString('utf8'))
    } catch (error) {
      throw this.malformed(`the answer is no JSON: ${JSON.stringify(body.toString('latin1', 0, 80))}`, error)
    }
  }

  /** The error for a response that does not match the upstream's documentation. */
  malformed(detail: string, cause?: unknown): UpstreamError {
    return new UpstreamError(this.name, 'malformed', detail, { cause })
  }

  /**
   * Sends the request until there is a response or the attempts are used up. Null: nothing has changed since the validators. Throws
   * `UpstreamError`, or the signal's reason if the caller aborts.
   */
  async fetch(request: UpstreamRequest): Promise<UpstreamAnswer | null> {
    const attemptsMax = this.#options.attemptsMax ?? UPSTREAM_ATTEMPTS_MAX
    for (let attempts = 1; ; attempts += 1) {
      await this.#awaitTurn(request.signal)
      try {
        return await this.#attempt(request)
      } catch (error) {
        request.signal?.throwIfAborted()
        if (!(error instanceof UpstreamError)) throw error
        const waitMs = this.#waitBeforeNext(error, attempts)
        const isLast = attempts >= attemptsMax || PERMANENT.has(error.failure)
        if (isLast || waitMs > UPSTREAM_RETRY_AFTER_MS_MAX) throw error
        await this.#clock.sleep(waitMs, request.signal)
      }
    }
  }

  /** Closes the connections; a running request fails. */
  async close(): Promise<void> {
    await this.#agent.destroy()
  }

  async #awaitTurn(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    const waitMs = this.#budget.reserve(this.#clock.nowMs(), UPSTREAM_BUDGET_WAIT_MS_MAX)
    if (waitMs === undefined) {
      throw new UpstreamError(
        this.name,
        'rate_limited',
        `the own request budget is used up for more than ${UPSTREAM_BUDGET_WAIT_MS_MAX} ms`,
      )
    }
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal)
  }

  /** Exponential back-off, half of it jitter, or a longer Retry-After. Rate limits also delay all other requests. */
  #waitBeforeNext({ failure, retryAfterMs }: UpstreamError, attempts: number): number {
    const pauseMs = backOffMs(UPSTREAM_BACK_OFF, attempts, this.#options.random)
    const waitMs = Math.max(retryAfterMs ?? 0, pauseMs)
    if (failure === 'rate_limited' || retryAfterMs !== null) {
      this.#budget.pause(this.#clock.nowMs(), waitMs)
    }
    return waitMs
  }

  async #attempt(request: UpstreamRequest): Promise<UpstreamAnswer | null> {
    const timeoutMs = this.#options.timeoutMs ?? UPSTREAM_TIMEOUT_MS_DEFAULT
    const controller = new AbortController()
    const abort = (): void => controller.abort(request.signal?.reason)
    const timer = setTimeout(() => {
      controller.abort(new UpstreamError(this.name, 'timeout', `no complete answer within ${timeoutMs} ms`))
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
      return await this.#readAnswer(response, request)
    } catch (error) {
      throw transferFailure(this.name, error)
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
  ): Promise<UpstreamAnswer | null> {
    const { statusCode: status, headers, body } = response
    const bytesMax = this.#options.bodyBytesMax ?? UPSTREAM_BODY_BYTES_MAX_DEFAULT
    if (status === 304 && request.validators !== undefined) {
      await body.dump()
      return null
    }
    if (status < 200 || status > 299) {
      // The status and Retry-After count even if the body does not arrive.
      const text = await receiveBody(this.name, body).catch(() => Buffer.alloc(0))
      throw statusFailure(this.name, status, headers, text, this.#clock.nowMs())
    }
    const received = await receiveBody(this.name, body)
    return {
      status,
      body: await decoded(this.name, received, header(headers, 'content-encoding'), bytesMax),
      validators: { etag: header(headers, 'etag'), lastModified: header(headers, 'last-modified') },
    }
  }
}
