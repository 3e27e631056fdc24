// The adapter over uWebSockets.js: the only code that touches its requests and responses. It knows nothing of routes,
// errors or endpoints. Three rules of the library shape it. A request is gone when its handler returns, so all that may be
// needed later is copied by then. A response must not be touched after its abort event, so that event is subscribed to
// before the handler returns. Every write after that must be inside `cork`. A request that is answered before its handler
// returns needs none of the three.
//
// The header lines are read once, before the answer: a look-up by name does not show their order and number
// (received-request.ts).
//
// The bytes of one cork must fit the library's cork buffer. A write that does not fit makes the library flush the buffer
// first. If the kernel takes nothing of that, the write's own bytes are lost, though their chunk's size line is kept
// (AsyncSocket::uncork of version 20; fixed in later ones). So the head and short pieces of a body are written in pieces that
// fit, each in its own cork. Long ones are written outside it (foreign-cork.ts): one system call for a megabyte costs both
// ends about half of what sixty-four cost. Long bodies of known length go through `tryEnd`, which returns how much was
// taken and keeps nothing.

import { STATUS_CODES } from 'node:http'
import type { HttpRequest, HttpResponse, TemplatedApp } from 'uWebSockets.js'
import { type BodySocket, BodyWriter } from './body-writer.ts'
import { connectionLimits, connectionShares, establishedConnections } from './connection-shares.ts'
import {
  type BodySink,
  type Exchange,
  type ExchangeHandler,
  type HttpServer,
  type HttpServerOptions,
  type ReplyHead,
} from './exchange.ts'
import { type ForeignCork, openForeignCork } from './foreign-cork.ts'
import { ReceivedRequest } from './received-request.ts'
import { SizedBody } from './sized-body.ts'
import { listen, uWS } from './uws-library.ts'

/** Size of the library's cork buffer. */
const CORK_BUFFER_BYTES = 16 * 1024
const SPACE = 0x20
const STATUS_LINES: ReadonlyMap<number, string> = new Map(
  Object.entries(STATUS_CODES).map(([status, text]) => [Number(status), `${status} ${text}`]),
)
/** A chunk's size line takes up to eight bytes more than the piece. */
const PIECE_BYTES = CORK_BUFFER_BYTES - 64
/** The part of the cork buffer that the headers of an answer leave free. */
const FIRST_PIECE_BYTES = CORK_BUFFER_BYTES / 2

function peerAddressOf(response: HttpResponse): string {
  return Buffer.from(response.getRemoteAddressAsText()).toString('latin1')
}

class UwsExchange extends ReceivedRequest implements Exchange {
  readonly #response: HttpResponse
  readonly #options: HttpServerOptions
  readonly #foreignCork: ForeignCork
  /** The library's handler is running: it has corked the response. */
  #isInHandler = true

  constructor(
    response: HttpResponse,
    request: HttpRequest,
    options: HttpServerOptions,
    foreignCork: ForeignCork,
  ) {
    super(request.getCaseSensitiveMethod(), request.getUrl(), request.getQuery() ?? '')
    this.#response = response
    this.#options = options
    this.#foreignCork = foreignCork
    request.forEach((name, value) => this.see(name, value))
  }

  /** The library's handler is about to return: from now on the response is not corked. */
  detach(): void {
    if (!this.isOver) this.#response.onAborted(() => this.lose())
    this.#isInHandler = false
  }

  get peerAddress(): string {
    return this.isOver ? '' : peerAddressOf(this.#response)
  }

  sendWhole(head: ReplyHead, body: Uint8Array): void {
    this.#finish(() => {
      this.#writeHead(head)
      this.#echoClose()
      if (body.length <= FIRST_PIECE_BYTES) this.#response.end(body)
      else this.#endLong(body)
    })
  }

  refuse(head: ReplyHead, body: Uint8Array): void {
    if (this.isOver) return
    this.isOver = true
    const response = this.#response
    this.#writeHead({ ...head, headers: { ...head.headers, Connection: 'close' } })
    // More than the cork buffer holds, so that all of it goes to the kernel now. The answer is then unfinished, so the library
    // closes the connection when it finds another request in the bytes that the client has sent.
    const padded = new Uint8Array(CORK_BUFFER_BYTES + body.length).fill(SPACE)
    padded.set(body)
    let isClosed = false
    response.onAborted(() => (isClosed = true))
    response.write(padded)
    setImmediate(() => {
      if (!isClosed) response.cork(() => response.end('', true))
    })
  }

  #endLong(body: Uint8Array): void {
    const response = this.#response
    // The event comes for an unfinished response, with the number of body bytes that the kernel has.
    response.onWritable((offset) => response.tryEnd(body.subarray(offset), body.length)[0])
    response.onAborted(() => {})
    response.tryEnd(body, body.length)
  }

  sendHead(head: ReplyHead): void {
    // The length is a header line: passed to endWithoutBody it leaves the response open forever.
    this.#finish(() => {
      this.#writeHead(head)
      this.#echoClose()
      this.#response.endWithoutBody()
    })
  }

  startBody(head: ReplyHead, sizeBytes: number | undefined): BodySink {
    const writer = sizeBytes === undefined ? this.#chunkedBody(head) : this.#sizedBody(head, sizeBytes)
    this.body = writer
    this.#response.onWritable(() => {
      writer.onWritable()
      return true
    })
    return writer
  }

  #sizedBody(head: ReplyHead, sizeBytes: number): SizedBody {
    let isHeadSent = false
    const offer = (bytes: Uint8Array): number => {
      if (this.isOver) return 0
      const response = this.#response
      const before = response.getWriteOffset()
      let isDone = false
      response.cork(() => {
        if (!isHeadSent) {
          this.#writeHead(head)
          this.#echoClose()
        }
        isHeadSent = true
        isDone = response.tryEnd(bytes, sizeBytes)[1]
      })
      // A finished response must not be used any more: all bytes were taken.
      this.isOver ||= isDone
      return isDone ? bytes.length : response.getWriteOffset() - before
    }
    return new SizedBody({ offer, close: () => this.destroy() }, { ...this.#options, sizeBytes })
  }

  #chunkedBody(head: ReplyHead): BodyWriter {
    let isHeadSent = false
    const inCork = (action: () => boolean): boolean => {
      if (this.isOver) return true
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
          this.isOver = true
          this.#response.end(bytes)
          return true
        })
      },
      close: () => this.destroy(),
    }
    return new BodyWriter(socket, this.#options)
  }

  /** While the library's handler runs, it has corked the response. */
  get #canWriteUncorked(): boolean {
    return !this.#isInHandler && this.#foreignCork.isHeld()
  }

  #writeUncorked(bytes: Uint8Array): boolean {
    let isDrained = true
    this.#foreignCork.run(() => {
      if (!this.isOver) isDrained = this.#response.write(bytes)
    })
    return isDrained
  }

  destroy(): void {
    if (this.isOver) return
    this.#response.close()
    this.lose()
  }

  #writeHead({ status, headers }: ReplyHead): void {
    const response = this.#response
    if (status !== 200) response.writeStatus(STATUS_LINES.get(status) ?? String(status))
    for (const each of [headers, this.commonHeaders])
      for (const name of Object.keys(each)) response.writeHeader(name, each[name] ?? '')
  }

  #finish(send: () => void): void {
    if (this.isOver) return
    this.isOver = true
    // The library itself corks inside its handler.
    if (!this.#isInHandler) this.#response.cork(send)
    else send()
  }

  /**
   * The library obeys `Connection: close` without echoing it. It is echoed only with a Content-Length: Node's fetch takes a
   * chunked answer with this header for complete even if it breaks off. Not for HEAD, whose headers are those of GET.
   */
  #echoClose(): void {
    if (this.method === 'HEAD' || this.header('connection').toLowerCase() !== 'close') return
    this.#response.writeHeader('Connection', 'close')
  }
}

/**
 * Closes connections beyond the limits as soon as they are accepted. The library reports that a connection was closed, but
 * not which one. So the kernel counts the connections of an address that may exceed its share.
 */
function limitConnections(app: TemplatedApp, options: HttpServerOptions, portOf: () => number): void {
  const { max, clientMax } = connectionLimits(options)
  const shares = connectionShares(clientMax, () => establishedConnections(portOf()))
  let open = 0
  app.filter((response, change) => {
    open += change
    if (change > 0 && (open > max || !shares.open(peerAddressOf(response)))) response.close()
  })
}

/**
 * Starts listening; every request goes to `handler`, which must not throw. Rejects when the address cannot be bound.
 * `foreignCork` is closed with the server.
 */
export async function startUwsServer(
  options: HttpServerOptions,
  handler: ExchangeHandler,
  foreignCork?: ForeignCork,
): Promise<HttpServer> {
  const cork = foreignCork ?? (await openForeignCork())
  const app = uWS.App()
  let boundPort = options.port
  limitConnections(app, options, () => boundPort)
  app.any('/*', (response, request) => {
    const exchange = new UwsExchange(response, request, options, cork)
    handler(exchange)
    exchange.detach()
  })
  try {
    const { host, port } = options
    const listening = await listen(app, host, port)
    if (listening === false)
      throw new Error(`cannot listen on ${host} port ${port}: is the address in use? Port 0 is any free one.`)
    const close = (): void => {
      app.close()
      cork.close()
    }
    boundPort = uWS.us_socket_local_port(listening)
    return { port: boundPort, close }
  } catch (error) {
    cork.close()
    throw error
  }
}
