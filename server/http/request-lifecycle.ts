// The path of every request, from the route to the access log:
//
//   route ─▶ admission ─▶ parameters ─▶ handler ─▶ first chunk ─▶ status + headers ─▶ chunk ─▶ … ─▶ end
//   404/414 ◀┘ 401/405/429 ◀┘ 400/406 ◀┘  304/404/429 ◀┘  500/503 ◀┘   failure from here on: destroy the connection
//
// Until the status line is sent, every failure becomes a problem answer. After it, the server can only break the transfer:
// it sends no final chunk and no text in the body.

import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { REQUEST_TARGET_BYTES_MAX } from '../../shared/limits.ts'
import { quote } from '../query/parameter-parser.ts'
import { type Ending, RequestRecord } from './access-log.ts'
import type { Admission } from './admission.ts'
import { clientOf } from './client-address.ts'
import { chooseCoding, type ContentCoding } from './content-coding.ts'
import type { CorsPolicy } from './cors.ts'
import type { Endpoint, Reply, RequestContext, StreamReply, WholeReply } from './endpoint.ts'
import { heldIdentities } from './etag.ts'
import { ConnectionLoss, type Exchange, type RequestHeader } from './exchange.ts'
import { problemReply } from './problem.ts'
import { represent } from './representation.ts'
import { Router } from './router.ts'

const ALLOWED_METHODS = 'GET, HEAD, OPTIONS'
const NO_BYTES = new Uint8Array(0)

export interface LifecycleOptions {
  readonly logger: Logger
  /** Refuses clients without permission and clients that exceed their rate. */
  readonly admission?: Admission | undefined
  readonly cors?: CorsPolicy | undefined
  /** Trusted proxies in front, each of which adds an entry to X-Forwarded-For; none by default. */
  readonly trustedProxies?: number
  /** Called with every request when it is over. */
  readonly observe?: ((record: RequestRecord) => void) | undefined
}

/** The ending that follows from the status. */
function endingOfStatus(status: number, error: unknown): Ending {
  if (status < 400) return 'complete'
  const isOurs = status >= 500 && !(error instanceof ApiError && error.code === 'shutting_down')
  return isOurs ? 'failed' : 'refused'
}

export class RequestLifecycle {
  readonly #router: Router
  readonly #options: LifecycleOptions
  /**
   * Settles when the stream that asked last may write. In each turn of the event loop one stream writes a chunk, so that other
   * events are handled between two chunks, however many streams there are.
   */
  #lastTurn: Promise<void> = Promise.resolve()
  readonly #idleWaiters: (() => void)[] = []
  #activeCount = 0
  #isDraining = false
  #isCutting = false

  constructor(endpoints: readonly Endpoint[], options: LifecycleOptions) {
    this.#router = new Router(endpoints)
    this.#options = options
  }

  /** Requests being handled now. */
  get activeCount(): number {
    return this.#activeCount
  }

  /** From now on new requests are answered 503. Resolves when the active ones are over. */
  async drain(): Promise<void> {
    this.#isDraining = true
    if (this.#activeCount > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** The server is about to destroy the connections: from now on a lost client counts as `failed`. */
  cut(): void {
    this.#isCutting = true
  }

  /** Handles one request to its end; before it returns, unless something has to be awaited. Never throws. */
  readonly handle = (exchange: Exchange): void => {
    this.#activeCount += 1
    const record = new RequestRecord(exchange, randomUUID(), this.#options.admission?.isKey)
    exchange.commonHeaders = { 'X-Request-Id': record.requestId }
    try {
      if (exchange.framingFault !== undefined) this.#refuse(exchange, record, exchange.framingFault)
      else {
        const reply = this.#reply(exchange, record)
        if (reply instanceof Promise || 'stream' in reply) {
          void this.#sendLater(exchange, record, reply).finally(() => this.#finish(record))
          return
        }
        this.#sendWhole(exchange, record, reply)
      }
    } catch (error) {
      this.#fail(exchange, record, error)
    }
    this.#finish(record)
  }

  async #sendLater(
    exchange: Exchange,
    record: RequestRecord,
    pending: Reply | Promise<Reply>,
  ): Promise<void> {
    try {
      const reply = await pending
      if ('stream' in reply) await this.#sendStream(exchange, record, reply)
      else this.#sendWhole(exchange, record, reply)
    } catch (error) {
      this.#fail(exchange, record, error)
    }
  }

  #finish(record: RequestRecord): void {
    record.finish()
    record.write(this.#options.logger)
    this.#options.observe?.(record)
    this.#activeCount -= 1
    if (this.#activeCount === 0) for (const wake of this.#idleWaiters.splice(0)) wake()
  }

  #reply(exchange: Exchange, record: RequestRecord): Reply | Promise<Reply> {
    const { cors, admission, trustedProxies } = this.#options
    if (this.#isDraining)
      throw new ApiError('shutting_down', 'The server is shutting down and takes no new requests.')
    const targetBytes = exchange.path.length + (exchange.query === '' ? 0 : exchange.query.length + 1)
    if (targetBytes > REQUEST_TARGET_BYTES_MAX)
      throw new ApiError(
        'target_too_long',
        `Path and query have ${targetBytes} bytes; at most ${REQUEST_TARGET_BYTES_MAX} are accepted.`,
      )
    const match = this.#router.find(exchange.path)
    record.route = match?.endpoint.path ?? null
    if (cors !== undefined) exchange.commonHeaders = { ...exchange.commonHeaders, ...cors.headers(exchange) }
    if (exchange.method === 'OPTIONS' && match !== undefined) {
      const headers = { Allow: ALLOWED_METHODS, ...cors?.preflightHeaders(exchange) }
      return { status: 204, headers, body: NO_BYTES }
    }
    record.client = admission?.admit(exchange, match?.endpoint.access ?? 'data')
    if (match === undefined)
      throw new ApiError('unknown_path', `There is nothing at ${quote(exchange.path)}.`)
    if (exchange.method !== 'GET' && exchange.method !== 'HEAD')
      throw new ApiError(
        'method_not_allowed',
        `${quote(exchange.method)} is not offered; ${ALLOWED_METHODS} are.`,
        { headers: { Allow: ALLOWED_METHODS } },
      )
    const context = new ExchangeContext(exchange, record.client, trustedProxies ?? 0)
    const reply = match.endpoint.respond(exchange.query, match.pathValues, context)
    if (reply instanceof Promise) return reply.then((ready) => represent(ready, exchange))
    return represent(reply, exchange)
  }

  /** Refuses a request with ambiguous framing. Nothing in it or after it on its connection is trusted. */
  #refuse(exchange: Exchange, record: RequestRecord, fault: string): void {
    const detail = `The end of the request is ambiguous: ${fault}. Send requests without a body.`
    record.error = new ApiError('malformed_request', detail)
    const reply = problemReply(record.error, record.requestId)
    record.answered(reply.status)
    record.ending = endingOfStatus(reply.status, record.error)
    record.bytes = reply.body.length
    exchange.refuse(reply, reply.body)
  }

  #sendWhole(exchange: Exchange, record: RequestRecord, reply: WholeReply): void {
    if (exchange.isAborted) throw new ConnectionLoss('client_gone')
    const { status, headers, body } = reply
    record.answered(status)
    record.ending = endingOfStatus(status, record.error)
    if (exchange.method === 'HEAD')
      exchange.sendHead({ status, headers: { ...headers, 'Content-Length': String(body.length) } })
    else if (status === 204 || status === 304) exchange.sendHead(reply)
    else {
      record.rows = reply.rows ?? 0
      record.bytes = body.length
      exchange.sendWhole(reply, body)
    }
  }

  async #sendStream(exchange: Exchange, record: RequestRecord, reply: StreamReply): Promise<void> {
    try {
      if (exchange.method === 'HEAD') this.#sendStreamHead(exchange, record, reply)
      else await this.#sendStreamBody(exchange, record, reply)
    } catch (error) {
      this.#fail(exchange, record, error)
    } finally {
      if (exchange.method !== 'HEAD') record.rows = reply.stream.rows
      await reply.stream.close()
    }
  }

  #sendStreamHead(exchange: Exchange, record: RequestRecord, { status, headers, stream }: StreamReply): void {
    if (exchange.isAborted) throw new ConnectionLoss('client_gone')
    record.answered(status)
    const { sizeBytes } = stream
    const length =
      sizeBytes === undefined ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': String(sizeBytes) }
    exchange.sendHead({ status, headers: { ...headers, ...length } })
  }

  async #sendStreamBody(exchange: Exchange, record: RequestRecord, reply: StreamReply): Promise<void> {
    const { stream } = reply
    let chunk = await stream.next()
    if (exchange.isAborted) throw new ConnectionLoss('client_gone')
    record.answered(reply.status)
    const sink = exchange.startBody(reply, stream.sizeBytes)
    stream.attach?.(sink)
    try {
      for (; chunk !== null; chunk = await stream.next()) {
        await sink.write(chunk)
        // Without this pause a stream with ready chunks and a free socket would block all other requests.
        await (this.#lastTurn = this.#lastTurn.then(() => setImmediate()))
      }
      await sink.end()
    } finally {
      record.bytes = sink.bytesWritten
    }
  }

  /** Answers with a problem if the status is not sent yet, else breaks the transfer. */
  #fail(exchange: Exchange, record: RequestRecord, error: unknown): void {
    record.error = error
    if (exchange.isAborted || error instanceof ConnectionLoss) {
      record.ending = error instanceof ConnectionLoss ? error.reason : 'client_gone'
      if (!this.#isCutting) return
      record.ending = 'failed'
      record.error = new Error('cut off by the shutdown')
    } else if (record.status === null) {
      this.#sendWhole(exchange, record, problemReply(error, record.requestId))
    } else {
      record.ending = 'failed'
      exchange.destroy()
    }
  }
}

/** A class, because V8 makes an object literal with getters 20 times slower. The signal is created on first use. */
class ExchangeContext implements RequestContext {
  readonly #exchange: Exchange
  readonly #keyName: string | undefined
  readonly #trustedProxies: number

  constructor(exchange: Exchange, keyName: string | undefined, trustedProxies: number) {
    this.#exchange = exchange
    this.#keyName = keyName
    this.#trustedProxies = trustedProxies
  }

  get client(): string {
    return clientOf(this.#exchange, this.#keyName, this.#trustedProxies)
  }

  get headOnly(): boolean {
    return this.#exchange.method === 'HEAD'
  }

  header(name: RequestHeader): string {
    return this.#exchange.header(name)
  }

  get held(): string[] {
    return heldIdentities(this.header('if-none-match'))
  }

  get coding(): ContentCoding {
    return chooseCoding(this.#exchange.header('accept-encoding'))
  }

  get signal(): AbortSignal {
    return this.#exchange.signal
  }
}
