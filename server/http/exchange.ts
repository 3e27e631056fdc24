// The seam between Bookcast and its HTTP library: everything the request lifecycle needs to know of one request, and
// everything it can do to answer it. uws-server.ts implements it; another library would implement it anew.

import type { ReplyHeaders } from './endpoint.ts'

export interface ReplyHead {
  readonly status: number
  readonly headers: ReplyHeaders
}

/** Why a connection is over before its answer was complete. */
export type ConnectionLossReason = 'client_gone' | 'stalled'

/** Rejects writes to a connection that is no more. */
export class ConnectionLoss extends Error {
  readonly reason: ConnectionLossReason

  constructor(reason: ConnectionLossReason) {
    super(reason === 'stalled' ? 'the client took no bytes within the time-out' : 'the client is gone')
    this.name = 'ConnectionLoss'
    this.reason = reason
  }
}

/** A body under way. Its promises reject with ConnectionLoss; after that nothing needs to be ended. */
export interface BodySink {
  /** Resolves when the chunk has been taken: its memory may be reused and the next one may come. */
  write(chunk: Uint8Array): Promise<void>
  /** Sends what is left and completes the answer. */
  end(): Promise<void>
  /** Body bytes passed on so far. */
  readonly bytesWritten: number
}

/** One request and its answer. Exactly one of the send methods is called, unless the client is gone before. */
export interface Exchange {
  /** As sent: methods are case-sensitive. */
  readonly method: string
  /** Raw path, still percent-encoded. */
  readonly path: string
  /** Raw query without its `?`; empty when there is none. */
  readonly query: string
  /** Aborted when the connection is lost or destroyed before the answer was complete. */
  readonly signal: AbortSignal
  /** Sends a whole answer with its Content-Length. */
  sendWhole(head: ReplyHead, body: Uint8Array): void
  /** Sends status and headers only; a Content-Length among them is that of the body that GET would have. */
  sendHead(head: ReplyHead): void
  /** Sends status and headers together with the first bytes of a chunked body. */
  startBody(head: ReplyHead): BodySink
  /** Cuts the connection without completing the answer, so that the client sees a broken transfer. */
  destroy(): void
}

export type ExchangeHandler = (exchange: Exchange) => void
