// Writes one chunked body to a uWebSockets response at the pace of its client, and cuts off a client that stalls.
//
// What uWebSockets does and this class is built around: `write` always accepts everything, into its own memory when the
// kernel is full, and then answers false. Its writable event comes once and sends nothing by itself: only the next
// write pushes that backlog out, and answers true when all of it went to the kernel; no other call tells. After a write
// that answered false it aborts the connection within some 10 s unless a write or a writable event follows.
// So a few body bytes are always kept in reserve: while the socket is full one of them is offered at every writable
// event and every few seconds. The offer pushes the backlog, keeps that timer off and tells when the backlog is gone.
//
// A client makes progress when the writable event comes, which the kernel sends when a third of its send buffer is free
// (up to some megabytes), or when the backlog is gone. So that a slow client shows in time, little is written at once
// until much has gone through without the socket being full: a backlog of 64 KiB is gone when the client has taken about
// as much, which is what the stall time-out then asks for within it.

import {
  BODY_LAST_BYTES_MAX,
  BODY_PIECE_BYTES_MIN,
  BODY_PIECE_SHARE,
  BODY_RESERVE_BYTES,
} from '../../shared/limits.ts'
import type { BodySink } from './exchange.ts'
import { PacedBody } from './paced-body.ts'
import { ReaderPace } from './reader-pace.ts'

/** The three operations on a response that a body needs. */
export interface BodySocket {
  /**
   * Takes all bytes (at least one); true when they and every byte before them went to the kernel, but for the last cork
   * buffer's, of which the next write tells.
   */
  write(bytes: Uint8Array): boolean
  /** Completes the answer; what the kernel does not take now is sent by the library itself. */
  end(bytes: Uint8Array): void
  close(): void
}

export class BodyWriter extends PacedBody implements BodySink {
  readonly #socket: BodySocket
  readonly #reserve = new Uint8Array(BODY_RESERVE_BYTES)
  #reserveStart = 0
  #reserveEnd = 0
  /** Nothing of what was passed on is left in the library's own memory. */
  #isDrained = true
  /** What was passed on since the socket was full. */
  #freeBytes = 0
  bytesWritten = 0

  constructor(socket: BodySocket, stallTimeoutMs: number, pace: ReaderPace = new ReaderPace(0)) {
    super(() => socket.close(), stallTimeoutMs, pace)
    this.#socket = socket
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.assertOpen()
    for (let start = 0; start < chunk.length;) {
      const pieceBytes = Math.max(BODY_PIECE_BYTES_MIN, Math.floor(this.#freeBytes / BODY_PIECE_SHARE))
      const piece = chunk.subarray(start, start + pieceBytes)
      this.#passButReserve(piece)
      this.#freeBytes = this.#isDrained ? this.#freeBytes + piece.length : 0
      await this.#drained()
      start += piece.length
    }
  }

  async end(): Promise<void> {
    this.assertOpen()
    const surplusBytes = this.#reserveEnd - this.#reserveStart - BODY_LAST_BYTES_MAX
    if (surplusBytes > 0) this.#spend(surplusBytes)
    await this.#drained()
    const last = this.#reserve.subarray(this.#reserveStart, this.#reserveEnd)
    this.bytesWritten += last.length
    this.#socket.end(last)
  }

  /** Passes on the reserve and the chunk, but for their last bytes: half of them at most, so that something moves. */
  #passButReserve(chunk: Uint8Array): void {
    const heldBytes = this.#reserveEnd - this.#reserveStart
    const totalBytes = heldBytes + chunk.length
    const keptBytes = Math.min(BODY_RESERVE_BYTES, Math.ceil(totalBytes / 2))
    this.#spend(Math.min(heldBytes, totalBytes - keptBytes))
    // What stays of the old reserve comes before the kept end of the chunk, which then is all of it.
    const keptOfChunkBytes = Math.min(chunk.length, keptBytes)
    this.#pass(chunk.subarray(0, chunk.length - keptOfChunkBytes))
    this.#reserve.copyWithin(0, this.#reserveStart, this.#reserveEnd)
    this.#reserve.set(chunk.subarray(chunk.length - keptOfChunkBytes), keptBytes - keptOfChunkBytes)
    this.#reserveStart = 0
    this.#reserveEnd = keptBytes
  }

  #pass(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.bytesWritten += bytes.length
    this.pace.took(bytes.length)
    this.#isDrained = this.#socket.write(bytes)
    if (this.#isDrained) this.noteProgress()
  }

  #spend(sizeBytes: number): void {
    const start = this.#reserveStart
    this.#reserveStart += sizeBytes
    this.#pass(this.#reserve.subarray(start, this.#reserveStart))
  }

  /** Nothing is left to offer. */
  #isSpent(): boolean {
    return this.#reserveStart === this.#reserveEnd
  }

  /** Resolves when the backlog is gone, or no byte is left to offer: then the next chunk is the offer. */
  async #drained(): Promise<void> {
    this.assertOpen()
    if (!this.#isDrained && !this.#isSpent()) await this.wait()
  }

  protected offer(): boolean {
    const isSpent = this.#isSpent()
    if (!isSpent) this.#spend(1)
    return isSpent || this.#isDrained
  }
}
