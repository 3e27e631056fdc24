// The adapter over uWebSockets.js: the only code that touches its requests and responses. It knows nothing of routes,
// errors or endpoints. Three habits of the library shape it: a request is gone when its handler returns, so what may be
// asked for later is copied by then; a response may not be touched after its abort event, so that event is asked for
// before the handler returns; and every write after that stands inside `cork`. A request answered before its handler
// returns pays for none of the three.
//
// What one cork holds must fit the library's cork buffer. A write that does not makes the library flush the buffer first,
// and when the kernel takes nothing of that, the write's own bytes are dropped, though their chunk's size line is kept
// (AsyncSocket::uncork of version 20; later ones mend it). So the head and short pieces of a body go out in pieces that
// fit, each in its own cork; long ones outside of it (foreign-cork.ts), because one call of the kernel for a megabyte
// costs both ends about half of what sixty-four cost; and what is long but whole goes through `tryEnd`, which says how much
// was taken.

import { STATUS_CODES } from 'node:http'
import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type BodySocket, BodyWriter } from './body-writer.ts'
import {
  type BodySink,
  type Exchange,
  type ExchangeHandler,
  type ReplyHead,
  REQUEST_HEADERS,
  type RequestHeader,
} from './exchange.ts'
import { ForeignCork } from './foreign-cork.ts'
import { listen, uWS } from './uws-library.ts'

export interface HttpServerOptions {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  readonly stallTimeoutMs: number
}

export interface HttpServer {
  readonly port: number
  /** Stops listening and cuts every connection. */
  close(): void
}

const STATUS_LINES: ReadonlyMap<number, string> = new Map(
  Object.entries(STATUS_CODES).map(([status, text]) => [Number(status), `${status} ${text}`]),
)

/** Bytes of the library's cork buffer. */
const CORK_BUFFER_BYTES = 16 * 1024
/** A chunk's size line takes up to eight bytes more. */
const PIECE_BYTES = CORK_BUFFER_BYTES - 64
/** What is left of it beside the headers of an answer. */
const FIRST_PIECE_BYTES = CORK_BUFFER_BYTES / 2

class UwsExchange implements Exchange {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly #response: HttpResponse
  readonly #stallTimeoutMs: number
  readonly #foreignCork: ForeignCork
  /** The library's request, as long as it may be read. */
  #request: HttpRequest | undefined
  #copiedHeaders: Partial<Record<RequestHeader, string>> | undefined
  #controller: AbortController | undefined
  #writer: BodyWriter | undefined
  #isOver = false
  #isAborted = false

  constructor(
    response: HttpResponse,
    request: HttpRequest,
    stallTimeoutMs: number,
    foreignCork: ForeignCork,
  ) {
    this.#response = response
    this.#request = request
    this.#stallTimeoutMs = stallTimeoutMs
    this.#foreignCork = foreignCork
    this.method = request.getCaseSensitiveMethod()
    this.path = request.getUrl()
    this.query = request.getQuery() ?? ''
  }

  /** The library's handler is about to return: from now on the request cannot be read. */
  detach(): void {
    if (!this.#isOver) {
      const copied: Partial<Record<RequestHeader, string>> = {}
      for (const name of REQUEST_HEADERS) copied[name] = this.header(name)
      this.#copiedHeaders = copied
      this.#response.onAborted(() => this.#onAborted())
    }
    this.#request = undefined
  }

  header(name: RequestHeader): string {
    return this.#request === undefined ? (this.#copiedHeaders?.[name] ?? '') : this.#request.getHeader(name)
  }

  get peerAddress(): string {
    return this.#isOver ? '' : Buffer.from(this.#response.getRemoteAddressAsText()).toString('latin1')
  }

  /** Made when it is first asked for: a request that is answered at once needs none. */
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

  sendWhole(head: ReplyHead, body: Uint8Array): void {
    this.#finish(() => {
      this.#writeHead(head)
      if (body.length <= FIRST_PIECE_BYTES) this.#response.end(body)
      else this.#endLong(body)
    })
  }

  #endLong(body: Uint8Array): void {
    const response = this.#response
    // The event comes for a response that is not done, and tells how many body bytes the kernel has.
    response.onWritable((offset) => response.tryEnd(body.subarray(offset), body.length)[0])
    response.onAborted(() => {})
    response.tryEnd(body, body.length)
  }

  sendHead(head: ReplyHead): void {
    // The length goes into a header line: given to endWithoutBody it leaves the response open for ever.
    this.#finish(() => {
      this.#writeHead(head)
      this.#response.endWithoutBody()
    })
  }

  startBody(head: ReplyHead): BodySink {
    let isHeadSent = false
    const inCork = (action: () => boolean): boolean => {
      if (this.#isOver) return true
      let isDrained = true
      this.#response.cork(() => {
        if (!isHeadSent) this.#writeHead(head)
        isHeadSent = true
        isDrained = action()
      })
      return isDrained
    }
    const write = (bytes: Uint8Array): boolean => {
      let isDrained = true
      for (let start = 0; start < bytes.length;) {
        const isWrittenWhole = isHeadSent && bytes.length - start > PIECE_BYTES && this.#canWriteUncorked
        if (isWrittenWhole) return this.#writeUncorked(bytes.subarray(start))
        const end = start + (isHeadSent ? PIECE_BYTES : FIRST_PIECE_BYTES)
        const piece = bytes.subarray(start, end)
        isDrained = inCork(() => this.#response.write(piece))
        start = end
      }
      return isDrained
    }
    const socket: BodySocket = {
      write,
      end: (bytes) => {
        inCork(() => {
          this.#isOver = true
          this.#response.end(bytes)
          return true
        })
      },
      close: () => this.destroy(),
    }
    const writer = new BodyWriter(socket, this.#stallTimeoutMs)
    this.#writer = writer
    this.#response.onWritable(() => {
      writer.onWritable()
      return true
    })
    return writer
  }

  /** While the library's handler runs, the response is in the library's cork. */
  get #canWriteUncorked(): boolean {
    return this.#request === undefined && this.#foreignCork.isHeld
  }

  #writeUncorked(bytes: Uint8Array): boolean {
    let isDrained = true
    this.#foreignCork.run(() => {
      if (!this.#isOver) isDrained = this.#response.write(bytes)
    })
    return isDrained
  }

  destroy(): void {
    if (this.#isOver) return
    this.#response.close()
    this.#onAborted()
  }

  #finish(send: () => void): void {
    if (this.#isOver) return
    this.#isOver = true
    // The library itself corks what happens inside its handler.
    if (this.#request === undefined) this.#response.cork(send)
    else send()
  }

  #writeHead({ status, headers, commonHeaders }: ReplyHead): void {
    const response = this.#response
    if (status !== 200) response.writeStatus(STATUS_LINES.get(status) ?? String(status))
    for (const name of Object.keys(headers)) response.writeHeader(name, headers[name] ?? '')
    for (const name of Object.keys(commonHeaders)) response.writeHeader(name, commonHeaders[name] ?? '')
  }

  #onAborted(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#isAborted = true
    this.#writer?.abort('client_gone')
    this.#controller?.abort()
  }
}

/**
 * Starts listening; every request goes to `handler`, which must not throw. Rejects when the address cannot be bound.
 * `foreignCork` is closed with the server.
 */
export async function startHttpServer(
  options: HttpServerOptions,
  handler: ExchangeHandler,
  foreignCork?: ForeignCork,
): Promise<HttpServer> {
  const cork = foreignCork ?? (await ForeignCork.open())
  const app = uWS.App()
  app.any('/*', (response, request) => {
    const exchange = new UwsExchange(response, request, options.stallTimeoutMs, cork)
    handler(exchange)
    exchange.detach()
  })
  try {
    const { host, port } = options
    const listening = await listen(app, host, port)
    if (listening === false) throw new Error(`cannot listen on ${host} port ${port}: is the address in use?`)
    const close = (): void => {
      app.close()
      cork.close()
    }
    return { port: uWS.us_socket_local_port(listening), close }
  } catch (error) {
    cork.close()
    throw error
  }
}
