// The seam between Bookcast and its HTTP library: everything the request lifecycle needs to know of one request, and
// everything it can do to answer it. uws-server.ts implements it, and node-server.ts where that one has no binary.

import type { StreamReader } from './byte-stream.ts'
import type { ReplyHeaders } from './endpoint.ts'

export interface ReplyHead {
  readonly status: number
  readonly headers: ReplyHeaders
  /** Headers that every answer to this client carries. */
  readonly commonHeaders: ReplyHeaders
}

/** Why a connection is over before its answer was complete. */
export type ConnectionLossReason = 'client_gone' | 'stalled' | 'displaced'

const LOSS_TEXTS: Readonly<Record<ConnectionLossReason, string>> = {
  client_gone: 'the client is gone',
  stalled: 'the client took no bytes within the time-out',
  displaced: 'the client took less than a fair rate while others waited',
}

/** Rejects writes to a connection that is no more. */
export class ConnectionLoss extends Error {
  readonly reason: ConnectionLossReason

  constructor(reason: ConnectionLossReason) {
    super(LOSS_TEXTS[reason])
    this.name = 'ConnectionLoss'
    this.reason = reason
  }
}

/** A body under way. Its promises reject with ConnectionLoss; after that nothing needs to be ended. */
export interface BodySink extends StreamReader {
  /** Resolves when the chunk has been taken: its memory may be reused and the next one may come. */
  write(chunk: Uint8Array): Promise<void>
  /** Sends what is left and completes the answer. */
  end(): Promise<void>
  /** Body bytes passed on so far. */
  readonly bytesWritten: number
}

/** The request headers that anything here looks at; all others are never read. */
export const REQUEST_HEADERS = [
  'accept',
  'accept-encoding',
  'authorization',
  'connection',
  'if-none-match',
  'if-range',
  'origin',
  'range',
  'x-api-key',
  'x-forwarded-for',
] as const
export type RequestHeader = (typeof REQUEST_HEADERS)[number]

/** One request and its answer. Exactly one of the send methods is called, unless the client is gone before. */
export interface Exchange {
  /** As sent: methods are case-sensitive. */
  readonly method: string
  /** Raw path, still percent-encoded. */
  readonly path: string
  /** Raw query without its `?`; empty when there is none. */
  readonly query: string
  /** Why the request must be refused and its connection closed: two readers may disagree where it ends. */
  readonly framingFault: string | undefined
  /** The text of a header, that of several lines joined by commas; empty when it was not sent. */
  header(name: RequestHeader): string
  /** The address the connection comes from, as text. Only until the answer is sent. */
  readonly peerAddress: string
  /** Aborted when the connection is lost or destroyed before the answer was complete. */
  readonly signal: AbortSignal
  /** The same as `signal.aborted`, without making a signal. */
  readonly isAborted: boolean
  /** Sends a whole answer with its Content-Length. */
  sendWhole(head: ReplyHead, body: Uint8Array): void
  /** Sends status and headers only; a Content-Length among them is that of the body that GET would have. */
  sendHead(head: ReplyHead): void
  /** Sends status and headers together with the first bytes of a body: a chunked one, unless its length is known. */
  startBody(head: ReplyHead, sizeBytes: number | undefined): BodySink
  /**
   * Sends a whole answer and closes the connection behind it. What the client has sent behind the request is never
   * taken for another one. `body` must bear white space behind it.
   */
  refuse(head: ReplyHead, body: Uint8Array): void
  /** Cuts the connection without completing the answer, so that the client sees a broken transfer. */
  destroy(): void
}

export type ExchangeHandler = (exchange: Exchange) => void

export interface HttpServerOptions {
  readonly host: string
  /** 0 lets the system choose. */
  readonly port: number
  readonly stallTimeoutMs: number
  /** What a client has to take of a stream while others wait for its slot; 0: nothing. */
  readonly fairBytesPerS?: number
  /** Open connections at most; further ones are closed at once. They leave some descriptors to others in any case. */
  readonly connectionsMax?: number
  /** Open connections of one address at most; a tenth of all when left out. */
  readonly clientConnectionsMax?: number | undefined
}

export interface HttpServer {
  readonly port: number
  /** Stops listening and cuts every connection. */
  close(): void
}
