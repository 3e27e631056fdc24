// The adapter over node:http, for systems on which uWebSockets.js has no binary. It keeps the rules of the other one: a
// request that is not plainly framed is refused and nothing behind it is read; a request that comes while the one before
// it is being answered costs the connection; what a client sends as a body is dropped; no header is added that the answer
// does not have.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { REQUEST_HEAD_BYTES_MAX } from '../../shared/limits.ts'
import { ConnectionShares, connectionLimits } from './connection-shares.ts'
import {
  type BodySink,
  type Exchange,
  type ExchangeHandler,
  type HttpServer,
  type HttpServerOptions,
  type ReplyHead,
} from './exchange.ts'
import { answerBarely, brokenHead, isParserError, LastRequest, type ParserError } from './last-request.ts'
import { NodeBody } from './node-body.ts'
import { ReaderPace } from './reader-pace.ts'
import { ReceivedRequest, splitTarget } from './received-request.ts'

/** A connection that says nothing for so long, or is not done with the head of a request, is closed. */
const IDLE_TIMEOUT_MS = 10_000
/** How often Node looks for those. */
const IDLE_CHECK_MS = 2_000

/** What is known of a connection. */
interface Connection {
  /** The answer under way. */
  current: NodeExchange | undefined
  /** Nothing more is read from it. */
  isCondemned: boolean
}

class NodeExchange extends ReceivedRequest implements Exchange {
  readonly #response: ServerResponse
  readonly #socket: Socket
  readonly #connection: Connection
  readonly #options: HttpServerOptions
  /** Of a body whose length the client knows. */
  #leftBytes = Infinity

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    connection: Connection,
    options: HttpServerOptions,
  ) {
    super(request.method ?? '', ...splitTarget(request.url ?? ''))
    this.#response = response
    this.#socket = request.socket
    this.#connection = connection
    this.#options = options
    const { rawHeaders } = request
    for (let index = 0; index + 1 < rawHeaders.length; index += 2)
      this.see((rawHeaders[index] ?? '').toLowerCase(), rawHeaders[index + 1] ?? '')
    response.on('close', () => this.#onClose())
  }

  get peerAddress(): string {
    return this.isOver ? '' : (this.#socket.remoteAddress ?? '')
  }

  /** Whether the client may have all of the answer and ask again; of a body without a length that is when it is over. */
  get isGiven(): boolean {
    return this.isOver || this.#leftBytes <= 0
  }

  sendWhole(head: ReplyHead, body: Uint8Array): void {
    if (this.isOver) return
    this.#writeHead(head, { 'Content-Length': String(body.length), ...this.#closeEcho() })
    this.#endWith(body)
  }

  sendHead(head: ReplyHead): void {
    if (this.isOver) return
    this.#writeHead(head, this.#closeEcho())
    this.#endWith(undefined)
  }

  refuse(head: ReplyHead, body: Uint8Array): void {
    if (this.isOver) return
    this.#connection.isCondemned = true
    this.#writeHead(head, { 'Content-Length': String(body.length), Connection: 'close' })
    this.#response.shouldKeepAlive = false
    this.#endWith(body)
  }

  startBody(head: ReplyHead, sizeBytes: number | undefined): BodySink {
    this.#writeHead(head, sizeBytes === undefined ? {} : { 'Content-Length': String(sizeBytes) })
    this.#leftBytes = sizeBytes ?? Infinity
    const { stallTimeoutMs, fairBytesPerS = 0 } = this.#options
    const socket = this.#socket
    const body = new NodeBody(
      {
        write: (bytes, onTaken) => {
          this.#leftBytes -= bytes.length
          this.#response.write(bytes, onTaken)
        },
        end: () => {
          if (this.isOver) return
          this.#endWith(undefined)
        },
        close: () => this.destroy(),
      },
      stallTimeoutMs,
      new ReaderPace(fairBytesPerS),
    )
    // The body watches its client itself, and a quiet producer is nobody's fault.
    socket.setTimeout(0)
    this.body = body
    return body
  }

  destroy(): void {
    if (this.isOver) return
    this.#connection.isCondemned = true
    this.lose()
    this.#socket.destroy()
  }

  #writeHead({ status, headers, commonHeaders }: ReplyHead, more: Readonly<Record<string, string>>): void {
    const response = this.#response
    response.statusCode = status
    // Without it Node says whether the connection stays, which HTTP/1.1 need not be told.
    response.removeHeader('Connection')
    for (const each of [headers, commonHeaders, more])
      for (const name of Object.keys(each)) response.setHeader(name, each[name] ?? '')
  }

  /** The answer is complete; Node sends what the kernel does not take now, to a client that takes some of it in time. */
  #endWith(body: Uint8Array | undefined): void {
    this.isOver = true
    this.#socket.setTimeout(this.#options.stallTimeoutMs)
    if (body === undefined) this.#response.end()
    else this.#response.end(body)
  }

  /** Only where a Content-Length tells the end, and not to HEAD, whose headers are those of GET (see uws-server.ts). */
  #closeEcho(): Readonly<Record<string, string>> {
    if (this.header('connection').toLowerCase() !== 'close') return {}
    this.#response.shouldKeepAlive = false
    return this.method === 'HEAD' ? {} : { Connection: 'close' }
  }

  #onClose(): void {
    if (this.#connection.current === this) this.#connection.current = undefined
    this.lose()
  }
}

/** Whether only the method is unknown, or the target has characters that are not ASCII: our own words say that better. */
function isOdd({ code }: ParserError, requestLine = ''): boolean {
  if (code === 'HPE_INVALID_METHOD') return /^[A-Za-z]+ \//.test(requestLine)
  return code === 'HPE_INVALID_URL' && /^[A-Z]+ \/[!-~\x80-\xff]* HTTP\/1\.1$/.test(requestLine)
}

/** Answers what Node's parser does not understand, as far as the answer cannot be taken for that of another request. */
function onParserError(
  error: unknown,
  socket: Socket,
  connection: Connection,
  handler: ExchangeHandler,
): void {
  // The answer of the one that was refused is on its way.
  if (connection.isCondemned) return
  connection.isCondemned = true
  const isPending = connection.current !== undefined && !connection.current.isOver
  if (isPending || !socket.writable || !isParserError(error)) {
    socket.destroy()
    return
  }
  const head = brokenHead(error)
  const request = head === undefined ? undefined : new LastRequest(socket, socket.remoteAddress ?? '', head)
  const isRefusedHere =
    request !== undefined && (request.framingFault !== undefined || isOdd(error, head?.[0]))
  if (isRefusedHere) handler(request)
  else answerBarely(socket, error)
}

/** Starts listening; every request goes to `handler`, which must not throw. Rejects when the address cannot be bound. */
export async function startNodeServer(
  options: HttpServerOptions,
  handler: ExchangeHandler,
): Promise<HttpServer> {
  const connections = new WeakMap<Socket, Connection>()
  const connectionOf = (socket: Socket): Connection => {
    const known = connections.get(socket) ?? { current: undefined, isCondemned: false }
    connections.set(socket, known)
    return known
  }
  const server = createServer({
    maxHeaderSize: REQUEST_HEAD_BYTES_MAX,
    headersTimeout: IDLE_TIMEOUT_MS,
    requestTimeout: IDLE_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    connectionsCheckingInterval: IDLE_CHECK_MS,
    noDelay: true,
  })
  const { max, clientMax } = connectionLimits(options)
  server.maxConnections = max
  const shares = new ConnectionShares(clientMax)
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket
    if (shares.open(remoteAddress)) socket.once('close', () => shares.close(remoteAddress))
    else socket.destroy()
  })
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connectionOf(request.socket)
    // What comes behind a request that was refused is no request.
    if (connection.isCondemned) return
    if (connection.current !== undefined && !connection.current.isGiven) {
      connection.isCondemned = true
      request.socket.destroy()
      return
    }
    if (request.httpVersion !== '1.1') {
      connection.isCondemned = true
      answerBarely(request.socket, { code: 'HPE_INVALID_VERSION' })
      return
    }
    request.resume()
    const exchange = new NodeExchange(request, response, connection, options)
    connection.current = exchange
    handler(exchange)
  }
  server.on('request', onRequest)
  // A body is never asked for, whatever the client expects.
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('clientError', (error, socket) =>
    onParserError(error, socket as Socket, connectionOf(socket as Socket), handler),
  )
  server.on('connect', (request, socket) => {
    connectionOf(request.socket).isCondemned = true
    const line = `${request.method} ${request.url} HTTP/1.1`
    handler(new LastRequest(socket, request.socket.remoteAddress ?? '', [line]))
  })
  await listen(server, options)
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { port: (server.address() as AddressInfo).port, close }
}

async function listen(server: Server, { host, port }: HttpServerOptions): Promise<void> {
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen({ host, port, exclusive: true }, resolve)
    })
  } catch (error) {
    throw new Error(`cannot listen on ${host} port ${port}: is the address in use? Port 0 is any free one.`, {
      cause: error,
    })
  }
}
