// The interface between Bookcast and its HTTP library: what the request lifecycle needs to know about one request, and how it
// answers. uws-server.ts implements it; node-server.ts does where uWebSockets.js has no binary.

import type { StreamReader } from './byte-stream.ts'

export type ReplyHeaders = Readonly<Record<string, string>>

export interface ReplyHead {
  readonly status: number
  readonly headers: ReplyHeaders
}

/** Why a connection ended before its answer was complete. */
export type ConnectionLossReason = 'client_gone' | 'stalled' | 'displaced'

const LOSS_TEXTS: Readonly<Record<ConnectionLossReason, string>> = {
  client_gone: 'the client is gone',
  stalled: 'the client took no bytes within the time-out',
  displaced: 'the client took less than a fair rate while others waited',
}

/** Rejects writes to a lost connection. */
export class ConnectionLoss extends Error {
  readonly reason: ConnectionLossReason

  constructor(reason: ConnectionLossReason) {
    super(LOSS_TEXTS[reason])
    this.name = 'ConnectionLoss'
    this.reason = reason
  }
}

/** A body being sent. Its promises reject with ConnectionLoss; after that `end` need not be called. */
export interface BodySink extends StreamReader {
  /** Resolves when the chunk has been taken: its memory may be reused and the next chunk may follow. */
  write(chunk: Uint8Array): Promise<void>
  /** Sends the remaining bytes and completes the answer. */
  end(): Promise<void>
  /** Body bytes passed on so far. */
  readonly bytesWritten: number
}

/** The request headers that the server reads; all others are ignored. */
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

/** One request and its answer. Exactly one of the send methods is called, unless the client leaves first. */
export interface Exchange {
  /** As sent: methods are case-sensitive. */
  readonly method: string
  /** Raw path, still percent-encoded. */
  readonly path: string
  /** Raw query without its `?`; empty when there is none. */
  readonly query: string
  /** Why the request must be refused and its connection closed: two parsers may disagree where it ends. */
  readonly framingFault: string | undefined
  /** The value of a header; several lines are joined by commas; empty when it was not sent. */
  header(name: RequestHeader): string
  /** The peer's address as text. Valid until the answer is sent. */
  readonly peerAddress: string
  /** Aborted when the connection is lost or destroyed before the answer was complete. */
  readonly signal: AbortSignal
  /** The same as `signal.aborted`, without creating a signal. */
  readonly isAborted: boolean
  /** Headers that its answer carries besides its own. */
  commonHeaders: ReplyHeaders
  /** Sends a whole answer with its Content-Length. */
  sendWhole(head: ReplyHead, body: Uint8Array): void
  /** Sends status and headers only; a Content-Length among them is that of the body of GET. */
  sendHead(head: ReplyHead): void
  /** Sends status and headers together with the first bytes of a body, which is chunked unless its length is known. */
  startBody(head: ReplyHead, sizeBytes: number | undefined): BodySink
  /**
   * Sends a whole answer and closes the connection. Bytes that the client sent after the request are never parsed as
   * another request. `body` must allow trailing white space.
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
  /** The rate at which a client must take a stream while others wait for its slot; 0: none. */
  readonly fairBytesPerS?: number
  /** The limit on open connections; further ones are closed at once. Some file descriptors stay reserved in any case. */
  readonly connectionsMax?: number
  /** The limit on open connections of one address; by default a tenth of all. */
  readonly clientConnectionsMax?: number | undefined
}

export interface HttpServer {
  readonly port: number
  /** Stops listening and cuts every connection. */
  close(): void
}
