// A request as read by either library: its first line, the headers that an answer depends on, faults in its framing, and
// whether its client is still connected.
//
// A request is refused if two parsers could disagree where it ends. The library uses the first Content-Length, takes any
// Transfer-Encoding for chunked and parses chunks leniently. A proxy that parses them otherwise would let a second request
// through in the body of a first (RFC 9112, section 11.2). No endpoint takes a body, so every request with ambiguous
// framing is refused.

import {
  type ConnectionLossReason,
  REQUEST_HEADERS,
  type ReplyHeaders,
  type RequestHeader,
} from './exchange.ts'

const LOOKED_AT: ReadonlySet<string> = new Set(REQUEST_HEADERS)

export abstract class ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  commonHeaders: ReplyHeaders = {}
  /** Nothing more can be sent: the answer is complete, or the connection is lost. */
  isOver = false
  /** The body being sent. */
  protected body: { abort(reason: ConnectionLossReason): void } | undefined
  readonly #headers = new Map<string, string>()
  #contentLengths = 0
  #hosts = 0
  #fault: string | undefined
  #controller: AbortController | undefined
  #isAborted = false

  constructor(method: string, path: string, query: string) {
    this.method = method
    this.path = path
    this.query = query
  }

  /** Reads the next header line; the name is in lower case. Several lines of one name form one list. */
  protected see(name: string, value: string): void {
    if (name === 'content-length') {
      this.#contentLengths += 1
      if (!/^\d{1,15}$/.test(value)) this.#fault ??= 'its Content-Length is no number'
    } else if (name === 'transfer-encoding') this.#fault ??= 'it has a Transfer-Encoding'
    else if (name === 'host') this.#hosts += 1
    if (!LOOKED_AT.has(name)) return
    const before = this.#headers.get(name)
    this.#headers.set(name, before === undefined ? value : `${before}, ${value}`)
  }

  header(name: RequestHeader): string {
    return this.#headers.get(name) ?? ''
  }

  get framingFault(): string | undefined {
    if (this.#contentLengths > 1) return 'it has several Content-Length lines'
    if (this.#hosts > 1) return 'it has several Host lines'
    return this.#fault
  }

  /** Created on first use: a request that is answered at once needs none. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#isAborted) this.#controller.abort()
    }
    return this.#controller.signal
  }

  get isAborted(): boolean {
    return this.#isAborted
  }

  /** The connection is lost: aborts the body and the signal, unless the answer is complete. */
  protected lose(): void {
    if (this.isOver) return
    this.isOver = true
    this.body?.abort('client_gone')
    this.#isAborted = true
    this.#controller?.abort()
  }
}

/** Path and query of a request target. */
export function splitTarget(target: string): [path: string, query: string] {
  const mark = target.indexOf('?')
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark + 1)]
}
