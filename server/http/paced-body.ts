// A body that waits until its client takes bytes, and cuts off a client that stalls. uWebSockets reports new room once, and
// aborts the connection within some 10 s after a write that the kernel did not take, unless another one follows. So while the
// socket is full, the body offers bytes at every writable event and every few seconds. Over node:http an offer only checks
// whether the kernel has taken the current piece.

import { BODY_PIECE_BYTES_MIN, BODY_PIECE_SHARE } from '../../shared/limits.ts'
import { ConnectionLoss, type ConnectionLossReason, type HttpServerOptions } from './exchange.ts'
import { ReaderPace } from './reader-pace.ts'

/** How often a stalled stream offers bytes to the socket, which also resets the 10 s timer of uWebSockets. */
export const STALL_PROBE_MS = 4_000

/** What a slow client is measured by. */
export type PaceLimits = Pick<HttpServerOptions, 'stallTimeoutMs' | 'fairBytesPerS'>

interface Waiter {
  resolve(): void
  reject(error: ConnectionLoss): void
}

/** @typeParam Socket the operations on a response that the body needs */
export abstract class PacedBody<Socket extends { close(): void }> {
  protected readonly socket: Socket
  protected readonly pace: ReaderPace
  readonly #stallTimeoutMs: number
  #waiter: Waiter | undefined
  #probeTimer: NodeJS.Timeout | undefined
  /** Time since the client last took bytes. */
  #quietMs = 0
  #loss: ConnectionLoss | undefined
  /** Bytes passed on since the client was last behind. */
  protected freeBytes = 0
  bytesWritten = 0

  constructor(socket: Socket, { stallTimeoutMs, fairBytesPerS = 0 }: PaceLimits) {
    this.socket = socket
    this.#stallTimeoutMs = stallTimeoutMs
    this.pace = new ReaderPace(fairBytesPerS)
  }

  /** Offers bytes to the socket; true when the body may continue. */
  protected abstract offer(): boolean

  /** The pieces of a chunk, which are short until many bytes have gone through without a wait. */
  protected *piecesOf(chunk: Uint8Array): Generator<Uint8Array, void, void> {
    for (let start = 0; start < chunk.length;) {
      const pieceBytes = Math.max(BODY_PIECE_BYTES_MIN, Math.floor(this.freeBytes / BODY_PIECE_SHARE))
      const piece = chunk.subarray(start, start + pieceBytes)
      yield piece
      start += piece.length
    }
  }

  /** Throws when the connection is lost. */
  protected assertOpen(): void {
    if (this.#loss !== undefined) throw this.#loss
  }

  /** Resolves when `offer` returns true. Rejects with ConnectionLoss. */
  protected async wait(): Promise<void> {
    this.assertOpen()
    this.pace.beginWait()
    await new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject }
      this.#armProbe()
    })
    this.pace.endWait()
  }

  /** The client has taken something. */
  protected noteProgress(): void {
    this.#quietMs = 0
  }

  /** The socket has room again. */
  onWritable(): void {
    this.#quietMs = 0
    if (this.#waiter !== undefined) this.#probe()
  }

  /** The connection is lost: rejects a pending wait with the reason. */
  abort(reason: ConnectionLossReason): void {
    this.#loss ??= new ConnectionLoss(reason)
    clearTimeout(this.#probeTimer)
    this.#waiter?.reject(this.#loss)
    this.#waiter = undefined
  }

  get slowInMs(): number {
    return this.pace.slowInMs
  }

  displace(): void {
    this.#cutOff('displaced')
  }

  #cutOff(reason: ConnectionLossReason): void {
    this.abort(reason)
    this.socket.close()
  }

  #armProbe(): void {
    const delayMs = Math.min(STALL_PROBE_MS, this.#stallTimeoutMs - this.#quietMs)
    this.#probeTimer = setTimeout(() => {
      this.#quietMs += delayMs
      if (this.#quietMs >= this.#stallTimeoutMs) this.#cutOff('stalled')
      else this.#probe()
    }, delayMs)
  }

  #probe(): void {
    clearTimeout(this.#probeTimer)
    if (this.offer()) {
      this.#waiter?.resolve()
      this.#waiter = undefined
    } else this.#armProbe()
  }
}
