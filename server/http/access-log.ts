// One structured log line per request, written when the request is over.

import { performance } from 'node:perf_hooks'
import { type Logger, symbols } from 'pino'
import type { Exchange } from './exchange.ts'
import { loggedTarget } from './logged-target.ts'

/**
 * How a request ended. `complete`: the whole answer was handed over; `refused`: a problem answer for an error of the client
 * or a limit of the server (4xx, shutting down); `failed`: a problem answer for an error of the server, or a connection
 * destroyed in mid-answer; `client_gone`: the client left first; `stalled`: cut off because the client took no bytes;
 * `displaced`: cut off because the client took less than a fair rate while others waited for what its answer held.
 */
export type Ending = 'complete' | 'refused' | 'failed' | 'client_gone' | 'stalled' | 'displaced'

function roundedMs(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

/** Collects the figures of one request. */
export class RequestRecord {
  readonly requestId: string
  readonly #exchange: Exchange
  readonly #isKey: ((text: string) => boolean) | undefined
  readonly #startMs = performance.now()
  /** The path as the endpoint declares it; null for an unknown one. */
  route: string | null = null
  /** The name of the API key, if keys are configured. */
  client: string | undefined = undefined
  /** Null when the client left before there was a status to send. */
  status: number | null = null
  /** Records in the answer; null when it broke off without a count. */
  rows: number | null = 0
  bytes = 0
  /** Null when no status line was sent. */
  firstByteMs: number | null = null
  totalMs = 0
  ending: Ending = 'complete'
  /** What went wrong, for the log only. */
  error: unknown = undefined

  /** @param isKey whether a text is an API key; undefined without configured keys */
  constructor(exchange: Exchange, requestId: string, isKey?: (text: string) => boolean) {
    this.#exchange = exchange
    this.#isKey = isKey
    this.requestId = requestId
  }

  get method(): string {
    return this.#exchange.method
  }

  /** Whether rows of a pinned version were sent: only paths with versions accept the parameter. */
  get isPinned(): boolean {
    return this.#hasRows && /(?:^|&)version=/.test(this.#exchange.query)
  }

  /** Whether a part of a body was sent, or only the rows after those that the client has. */
  get isResumed(): boolean {
    return this.status === 206 || (this.#hasRows && /(?:^|&)after=/.test(this.#exchange.query))
  }

  get #hasRows(): boolean {
    return this.status === 200 || this.status === 206
  }

  /** The status line is about to be sent. */
  answered(status: number): void {
    this.status = status
    this.firstByteMs = performance.now() - this.#startMs
  }

  /** The request is over. */
  finish(): void {
    this.totalMs = performance.now() - this.#startMs
  }

  /** Writes one line: with the logger when something failed, else by hand, which costs a third of that. */
  write(logger: Logger): void {
    if (this.ending === 'failed')
      logger.error({ ...JSON.parse(`{${this.#members()}}`), err: this.error }, 'request')
    else if (logger.isLevelEnabled('info'))
      streamOf(logger).write(
        `{"level":${logger.levels.values['info']},"time":${Date.now()},${this.#members()},"msg":"request"}\n`,
      )
  }

  /** Method, path and query without secrets. */
  get #target(): { method: string; path: string; query: string } {
    const { method, path, query } = this.#exchange
    const logged = (text: string): string => loggedTarget(text, this.#isKey)
    return { method: logged(method), path: path === this.route ? path : logged(path), query: logged(query) }
  }

  /** As JSON. Only the client's own text has to be escaped. */
  #members(): string {
    const { method, path, query } = this.#target
    const firstByteMs = this.firstByteMs === null ? null : roundedMs(this.firstByteMs)
    const pinned = this.isPinned ? ',"pinned":true' : ''
    const resumed = this.isResumed ? ',"resumed":true' : ''
    const client = this.client === undefined ? '' : `,"client":${JSON.stringify(this.client)}`
    return (
      `"request_id":"${this.requestId}","method":${JSON.stringify(method)},` +
      `"path":${JSON.stringify(path)},"query":${JSON.stringify(query)},"status":${this.status},"rows":${this.rows},` +
      `"bytes":${this.bytes},"first_byte_ms":${firstByteMs},"total_ms":${roundedMs(this.totalMs)},` +
      `"ending":"${this.ending}"${pinned}${resumed}${client}`
    )
  }
}

/** The stream of a logger, for lines that are formatted here; pino exports the symbol for this. */
function streamOf(logger: Logger): { write(line: string): void } {
  return Reflect.get(logger, symbols.streamSym) as { write(line: string): void }
}
