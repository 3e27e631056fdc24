// The adapter over node:http, for systems where uWebSockets.js has no binary. It keeps the rules of the other adapter: it
// refuses a request with ambiguous framing and reads nothing after it; it closes a connection that sends a request while the
// previous one is being answered; it discards request bodies; it adds no headers to those of the answer.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { REQUEST_HEAD_BYTES_MAX } from '../../shared/limits.ts'
import { connectionLimits, connectionShares } from './connection-shares.ts'
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
import { ReceivedRequest, splitTarget } from './received-request.ts'

/** A connection is closed after this time without bytes, or when the head of a request takes longer. */
const IDLE_TIMEOUT_MS = 10_000
/** How often Node looks for such connections. */
const IDLE_CHECK_MS = 2_000

/** The state of a connection. */
interface Connection {
  /** The answer being sent. */
  current: NodeExchange | undefined
  /** Nothing more is read from the connection. */
  isCondemned: boolean
}

class NodeExchange extends ReceivedRequest implements Exchange {
  readonly #response: ServerResponse
  readonly #socket: Socket
  readonly #connection: Connection
  readonly #options: HttpServerOptions
  /** Bytes left of a body whose length the client knows. */
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

  /** Whether the client may have the whole answer and send its next request. A body without a length counts when it is over. */
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
      this.#options,
    )
    // The body watches its client itself, and a slow producer must not close the connection.
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

  #writeHead({ status, headers }: ReplyHead, more: Readonly<Record<string, string>>): void {
    const response = this.#response
    response.statusCode = status
    // Otherwise Node states whether the connection stays open, which HTTP/1.1 does not need.
    response.removeHeader('Connection')
    for (const each of [headers, this.commonHeaders, more])
      for (const name of Object.keys(each)) response.setHeader(name, each[name] ?? '')
  }

  /** Completes the answer. Node sends what the kernel does not take now, if the client takes some of it within the timeout. */
  #endWith(body: Uint8Array | undefined): void {
    this.isOver = true
    this.#socket.setTimeout(this.#options.stallTimeoutMs)
    if (body === undefined) this.#response.end()
    else this.#response.end(body)
  }

  /** Only with a Content-Length, and not for HEAD, whose headers are those of GET (see uws-server.ts). */
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

/** Whether an answer is still being sent. */
function isBusy({ current }: Connection): boolean {
  return current !== undefined && !current.isGiven
}

/** Whether only the method is unknown, or the target has non-ASCII characters: the lifecycle's error text is clearer then. */
function isOdd({ code }: ParserError, requestLine = ''): boolean {
  if (code === 'HPE_INVALID_METHOD') return /^[A-Za-z]+ \//.test(requestLine)
  return code === 'HPE_INVALID_URL' && /^[A-Z]+ \/[!-~\x80-\xff]* HTTP\/1\.1$/.test(requestLine)
}

/** Answers what Node's parser rejects, unless the answer could be taken for that of another request. */
function onParserError(
  error: unknown,
  socket: Socket,
  connection: Connection,
  handler: ExchangeHandler,
): void {
  // The answer to the refused request is being sent.
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
  const shares = connectionShares(clientMax)
  server.on('connection', (socket) => {
    const { remoteAddress = '' } = socket
    if (shares.open(remoteAddress)) socket.once('close', () => shares.close(remoteAddress))
    else socket.destroy()
  })
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connectionOf(request.socket)
    // Bytes after a refused request are not a request.
    if (connection.isCondemned) return
    if (isBusy(connection)) {
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
  // The server never asks for a body, whatever the client expects.
  server.on('checkContinue', onRequest)
  server.on('checkExpectation', onRequest)
  server.on('clientError', (error, socket) =>
    onParserError(error, socket as Socket, connectionOf(socket as Socket), handler),
  )
  server.on('connect', (request, socket) => {
    // Node has stopped listening for errors of this socket; one without a listener would end the process.
    socket.on('error', () => socket.destroy())
    const connection = connectionOf(request.socket)
    connection.isCondemned = true
    if (isBusy(connection)) {
      socket.destroy()
      return
    }
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
  server.listen({ host, port, exclusive: true })
  await once(server, 'listening').catch((cause: unknown) => {
    throw new Error(`cannot listen on ${host} port ${port}: is the address in use? Port 0 is any free one.`, {
      cause,
    })
  })
}
