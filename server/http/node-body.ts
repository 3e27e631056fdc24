// Writes one chunked body over node:http at the pace of its client, and cuts off a client that stalls. Node tells of every
// write when the kernel has taken all of it, so a piece at a time is given to it: what waits in this process is one piece,
// and a client makes progress when it has taken as much. Pieces are short until much has gone through without a wait.

import { BODY_PIECE_BYTES_MIN, BODY_PIECE_SHARE } from '../../shared/limits.ts'
import { type BodySink, ConnectionLoss, type ConnectionLossReason } from './exchange.ts'
import type { ReaderPace } from './reader-pace.ts'

/** The three operations on a response that a body needs. */
interface PieceSocket {
  /** Calls `onTaken` when the kernel has the bytes, or with an error when it never will. */
  write(bytes: Uint8Array, onTaken: (error?: Error | null) => void): void
  end(): void
  close(): void
}

export class NodeBody implements BodySink {
  readonly #socket: PieceSocket
  readonly #stallTimeoutMs: number
  readonly #pace: ReaderPace
  #rejectWait: ((error: ConnectionLoss) => void) | undefined
  /** What was passed on since the client was behind. */
  #freeBytes = 0
  #loss: ConnectionLoss | undefined
  bytesWritten = 0

  constructor(socket: PieceSocket, stallTimeoutMs: number, pace: ReaderPace) {
    this.#socket = socket
    this.#stallTimeoutMs = stallTimeoutMs
    this.#pace = pace
  }

  async write(chunk: Uint8Array): Promise<void> {
    for (let start = 0; start < chunk.length;) {
      const pieceBytes = Math.max(BODY_PIECE_BYTES_MIN, Math.floor(this.#freeBytes / BODY_PIECE_SHARE))
      const piece = chunk.subarray(start, start + pieceBytes)
      await this.#pass(piece)
      start += piece.length
    }
  }

  async end(): Promise<void> {
    if (this.#loss !== undefined) throw this.#loss
    this.#socket.end()
  }

  /** The connection is lost: whoever waits for it learns why. */
  abort(reason: ConnectionLossReason): void {
    this.#loss ??= new ConnectionLoss(reason)
    this.#rejectWait?.(this.#loss)
    this.#rejectWait = undefined
  }

  get slowInMs(): number {
    return this.#pace.slowInMs
  }

  displace(): void {
    this.#cutOff('displaced')
  }

  async #pass(piece: Uint8Array): Promise<void> {
    if (this.#loss !== undefined) throw this.#loss
    this.bytesWritten += piece.length
    this.#pace.took(piece.length)
    this.#pace.beginWait()
    const startedMs = performance.now()
    const timer = setTimeout(() => this.#cutOff('stalled'), this.#stallTimeoutMs)
    try {
      await new Promise<void>((resolve, reject) => {
        this.#rejectWait = reject
        this.#socket.write(piece, (error) => {
          if (error) this.abort('client_gone')
          resolve()
        })
      })
    } finally {
      clearTimeout(timer)
      this.#rejectWait = undefined
    }
    if (this.#loss !== undefined) throw this.#loss
    this.#pace.endWait()
    const isBehind = performance.now() - startedMs > CLIENT_BEHIND_MS
    this.#freeBytes = isBehind ? 0 : this.#freeBytes + piece.length
  }

  #cutOff(reason: ConnectionLossReason): void {
    this.abort(reason)
    this.#socket.close()
  }
}

/** A write that takes longer has waited for the client. */
const CLIENT_BEHIND_MS = 20
