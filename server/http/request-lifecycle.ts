// What happens to every request, from the route to the access log:
//
//   route ─▶ parameters ─▶ handler ─▶ first chunk ─▶ status + headers ─▶ chunk ─▶ … ─▶ end
//   404/405/414 ◀┘  400/406 ◀┘  404/429 ◀┘  500/503 ◀┘        failure from here on: destroy the connection
//
// Until the status line is sent every failure becomes a problem answer. After it there is no way to tell the client but
// to break the transfer: no final chunk, no text in the body.

import { randomUUID } from 'node:crypto'
import type { Logger } from 'pino'
import { ApiError } from '../../shared/errors.ts'
import { REQUEST_TARGET_BYTES_MAX } from '../../shared/limits.ts'
import { quote } from '../query/parameter-parser.ts'
import { type Ending, RequestRecord } from './access-log.ts'
import type { Endpoint, Reply, ReplyHeaders, StreamReply, WholeReply } from './endpoint.ts'
import { ConnectionLoss, type Exchange } from './exchange.ts'
import { problemReply } from './problem.ts'
import { Router } from './router.ts'

const ALLOWED_METHODS = 'GET, HEAD, OPTIONS'
const OPTIONS_REPLY: WholeReply = {
  status: 204,
  headers: { Allow: ALLOWED_METHODS },
  body: new Uint8Array(0),
}

/** The ending that a status alone tells. */
function endingOfStatus(status: number, error: unknown): Ending {
  if (status < 400) return 'complete'
  const isOurs = status >= 500 && !(error instanceof ApiError && error.code === 'shutting_down')
  return isOurs ? 'failed' : 'refused'
}

export class RequestLifecycle {
  readonly #router: Router
  readonly #logger: Logger
  readonly #idleWaiters: (() => void)[] = []
  #activeCount = 0
  #isDraining = false
  #isCutting = false

  constructor(endpoints: readonly Endpoint[], logger: Logger) {
    this.#router = new Router(endpoints)
    this.#logger = logger
  }

  /** Requests being handled now. */
  get activeCount(): number {
    return this.#activeCount
  }

  /** From now on new requests are answered 503; resolves when those under way are over. */
  async drain(): Promise<void> {
    this.#isDraining = true
    if (this.#activeCount > 0) await new Promise<void>((resolve) => this.#idleWaiters.push(resolve))
  }

  /** The connections are about to be destroyed: from now on a lost client is our doing. */
  cut(): void {
    this.#isCutting = true
  }

  /** Handles one request to its end. Never throws. */
  readonly handle = (exchange: Exchange): void => {
    this.#activeCount += 1
    const record = new RequestRecord(exchange, randomUUID())
    void this.#run(exchange, record).finally(() => {
      record.write(this.#logger)
      this.#activeCount -= 1
      if (this.#activeCount === 0) for (const wake of this.#idleWaiters.splice(0)) wake()
    })
  }

  async #run(exchange: Exchange, record: RequestRecord): Promise<void> {
    try {
      const reply = await this.#reply(exchange)
      if ('stream' in reply) await this.#sendStream(exchange, record, reply)
      else this.#sendWhole(exchange, record, reply)
    } catch (error) {
      this.#fail(exchange, record, error)
    }
  }

  async #reply(exchange: Exchange): Promise<Reply> {
    if (this.#isDraining)
      throw new ApiError('shutting_down', 'The server is shutting down and takes no new requests.')
    const targetBytes = exchange.path.length + (exchange.query === '' ? 0 : exchange.query.length + 1)
    if (targetBytes > REQUEST_TARGET_BYTES_MAX)
      throw new ApiError(
        'target_too_long',
        `Path and query have ${targetBytes} bytes; at most ${REQUEST_TARGET_BYTES_MAX} are accepted.`,
      )
    const match = this.#router.find(exchange.path)
    if (match === undefined)
      throw new ApiError('unknown_path', `There is nothing at ${quote(exchange.path)}.`)
    const { method, query, signal } = exchange
    if (method === 'OPTIONS') return OPTIONS_REPLY
    if (method !== 'GET' && method !== 'HEAD')
      throw new ApiError('method_not_allowed', `${quote(method)} is not offered; ${ALLOWED_METHODS} are.`, {
        headers: { Allow: ALLOWED_METHODS },
      })
    return match.endpoint.respond(query, match.pathValues, { headOnly: method === 'HEAD', signal })
  }

  #sendWhole(exchange: Exchange, record: RequestRecord, reply: WholeReply): void {
    if (exchange.signal.aborted) throw new ConnectionLoss('client_gone')
    const headers = withRequestId(reply.headers, record)
    record.answered(reply.status)
    record.ending = endingOfStatus(reply.status, record.error)
    if (exchange.method === 'HEAD') {
      const length = { 'Content-Length': String(reply.body.length) }
      exchange.sendHead({ status: reply.status, headers: { ...headers, ...length } })
    } else if (reply.status === 204) exchange.sendHead({ status: reply.status, headers })
    else {
      record.rows = reply.rows ?? 0
      record.bytes = reply.body.length
      exchange.sendWhole({ status: reply.status, headers }, reply.body)
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

  #sendStreamHead(exchange: Exchange, record: RequestRecord, { status, headers }: StreamReply): void {
    if (exchange.signal.aborted) throw new ConnectionLoss('client_gone')
    record.answered(status)
    const encoding = { 'Transfer-Encoding': 'chunked' }
    exchange.sendHead({ status, headers: { ...withRequestId(headers, record), ...encoding } })
  }

  async #sendStreamBody(exchange: Exchange, record: RequestRecord, reply: StreamReply): Promise<void> {
    const { status, stream } = reply
    let chunk = await stream.next()
    if (exchange.signal.aborted) throw new ConnectionLoss('client_gone')
    record.answered(status)
    const sink = exchange.startBody({ status, headers: withRequestId(reply.headers, record) })
    try {
      for (; chunk !== null; chunk = await stream.next()) await sink.write(chunk)
      await sink.end()
    } finally {
      record.bytes = sink.bytesWritten
    }
  }

  /** Answers with a problem while that is possible, else breaks the transfer. */
  #fail(exchange: Exchange, record: RequestRecord, error: unknown): void {
    record.error = error
    if (exchange.signal.aborted || error instanceof ConnectionLoss) {
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

function withRequestId(headers: ReplyHeaders, record: RequestRecord): ReplyHeaders {
  return { ...headers, 'X-Request-Id': record.requestId }
}
