// The adapter over uWebSockets.js: the only code that touches its requests and responses. It knows nothing of routes,
// errors or endpoints. Three habits of the library shape it: a request is gone when its handler returns, so what may be
// asked for later is copied by then; a response may not be touched after its abort event, so that event is asked for
// before the handler returns; and every write after that stands inside `cork`. A request answered before its handler
// returns pays for none of the three.
//
// The header lines are gone through once, before anything is answered: their order and number tell what one look-up by
// name does not (received-request.ts).
//
// What one cork holds must fit the library's cork buffer. A write that does not makes the library flush the buffer first,
// and when the kernel takes nothing of that, the write's own bytes are dropped, though their chunk's size line is kept
// (AsyncSocket::uncork of version 20; later ones mend it). So the head and short pieces of a body go out in pieces that
// fit, each in its own cork; long ones outside of it (foreign-cork.ts), because one call of the kernel for a megabyte
// costs both ends about half of what sixty-four cost; and what is long but of known length goes through `tryEnd`, which
// says how much was taken and keeps nothing.

import type { HttpRequest, HttpResponse } from 'uWebSockets.js'
import { type BodySocket, BodyWriter } from './body-writer.ts'
import {
  type BodySink,
  type Exchange,
  type ExchangeHandler,
  type HttpServer,
  type HttpServerOptions,
  type ReplyHead,
} from './exchange.ts'
import { ForeignCork } from './foreign-cork.ts'
import { ReaderPace } from './reader-pace.ts'
import { ReceivedRequest } from './received-request.ts'
import { SizedBody } from './sized-body.ts'
import { limitConnections, peerAddressOf } from './uws-connections.ts'
import { writeHead } from './uws-head.ts'
import { listen, uWS } from './uws-library.ts'

/** Bytes of the library's cork buffer. */
const CORK_BUFFER_BYTES = 16 * 1024
const SPACE = 0x20
/** A chunk's size line takes up to eight bytes more. */
const PIECE_BYTES = CORK_BUFFER_BYTES - 64
/** What is left of it beside the headers of an answer. */
const FIRST_PIECE_BYTES = CORK_BUFFER_BYTES / 2

class UwsExchange extends ReceivedRequest implements Exchange {
  readonly #response: HttpResponse
  readonly #options: HttpServerOptions
  readonly #foreignCork: ForeignCork
  /** The library's handler runs: the response is in its cork. */
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

  /** The library's handler is about to return: from now on the response is in nobody's cork. */
  detach(): void {
    if (!this.isOver) this.#response.onAborted(() => this.lose())
    this.#isInHandler = false
  }

  get peerAddress(): string {
    return this.isOver ? '' : peerAddressOf(this.#response)
  }

  sendWhole(head: ReplyHead, body: Uint8Array): void {
    this.#finish(() => {
      writeHead(this.#response, head)
      this.#echoClose()
      if (body.length <= FIRST_PIECE_BYTES) this.#response.end(body)
      else this.#endLong(body)
    })
  }

  refuse(head: ReplyHead, body: Uint8Array): void {
    if (this.isOver) return
    this.isOver = true
    const response = this.#response
    writeHead(this.#response, { ...head, headers: { ...head.headers, Connection: 'close' } })
    // More than the cork buffer takes, so that all of it goes to the kernel now. The library has an answer under way
    // then, and closes the connection at the next request that it finds in what the client has sent.
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
    // The event comes for a response that is not done, and tells how many body bytes the kernel has.
    response.onWritable((offset) => response.tryEnd(body.subarray(offset), body.length)[0])
    response.onAborted(() => {})
    response.tryEnd(body, body.length)
  }

  sendHead(head: ReplyHead): void {
    // The length goes into a header line: given to endWithoutBody it leaves the response open for ever.
    this.#finish(() => {
      writeHead(this.#response, head)
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
          writeHead(response, head)
          this.#echoClose()
        }
        isHeadSent = true
        isDone = response.tryEnd(bytes, sizeBytes)[1]
      })
      // A response that is done may not be asked any more: all was taken.
      this.isOver ||= isDone
      return isDone ? bytes.length : response.getWriteOffset() - before
    }
    const { stallTimeoutMs, fairBytesPerS = 0 } = this.#options
    const pace = new ReaderPace(fairBytesPerS)
    return new SizedBody({ offer, close: () => this.destroy() }, { sizeBytes, stallTimeoutMs, pace })
  }

  #chunkedBody(head: ReplyHead): BodyWriter {
    let isHeadSent = false
    const inCork = (action: () => boolean): boolean => {
      if (this.isOver) return true
      let isDrained = true
      this.#response.cork(() => {
        if (!isHeadSent) writeHead(this.#response, head)
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
    const { stallTimeoutMs, fairBytesPerS = 0 } = this.#options
    return new BodyWriter(socket, stallTimeoutMs, new ReaderPace(fairBytesPerS))
  }

  /** While the library's handler runs, the response is in the library's cork. */
  get #canWriteUncorked(): boolean {
    return !this.#isInHandler && this.#foreignCork.isHeld
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

  #finish(send: () => void): void {
    if (this.isOver) return
    this.isOver = true
    // The library itself corks what happens inside its handler.
    if (!this.#isInHandler) this.#response.cork(send)
    else send()
  }

  /**
   * The library obeys a `Connection: close` without saying so. Said only where a Content-Length tells the end: Node's
   * fetch takes a chunked answer that breaks off behind this header for a whole one. Not said to HEAD, whose headers are
   * those of GET.
   */
  #echoClose(): void {
    if (this.method === 'HEAD' || this.header('connection').toLowerCase() !== 'close') return
    this.#response.writeHeader('Connection', 'close')
  }
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
  const cork = foreignCork ?? (await ForeignCork.open())
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
