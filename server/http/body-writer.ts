// Writes one chunked body to a uWebSockets response at the pace of its client, and cuts off a client that stalls.
//
// How uWebSockets behaves: `write` always accepts everything, keeps in its own memory what the kernel does not take, and
// then returns false. Its writable event comes once and sends nothing by itself. Only the next write pushes that backlog
// out, and returns true when all of it went to the kernel; no other call reports this. After a write that returned false
// the library aborts the connection within some 10 s unless a write or a writable event follows.
// So the writer always keeps a few body bytes in reserve. While the socket is full it offers one of them at every writable
// event and every few seconds. The offer pushes the backlog, resets that timer and reports when the backlog is gone.
//
// A client makes progress when the writable event comes, which the kernel sends when a third of its send buffer is free
// (up to some megabytes), or when the backlog is gone. To detect a slow client in time, pieces are short until many bytes
// have gone through without a full socket. A backlog of 64 KiB is gone when the client has taken about as much; the client
// must do that within the stall timeout.

import { BODY_LAST_BYTES_MAX, BODY_RESERVE_BYTES } from '../../shared/limits.ts'
import type { BodySink } from './exchange.ts'
import { PacedBody } from './paced-body.ts'

/** The three operations on a response that a body needs. */
export interface BodySocket {
  /**
   * Takes all bytes (at least one). Returns true when they and every byte before them went to the kernel, except those in
   * the cork buffer, which the next write reports.
   */
  write(bytes: Uint8Array): boolean
  /** Completes the answer; the library itself sends what the kernel does not take now. */
  end(bytes: Uint8Array): void
  close(): void
}

export class BodyWriter extends PacedBody<BodySocket> implements BodySink {
  readonly #reserve = new Uint8Array(BODY_RESERVE_BYTES)
  #reserveStart = 0
  #reserveEnd = 0
  /** The library's own memory holds nothing of what was passed on. */
  #isDrained = true

  async write(chunk: Uint8Array): Promise<void> {
    this.assertOpen()
    for (const piece of this.piecesOf(chunk)) {
      this.#passButReserve(piece)
      this.freeBytes = this.#isDrained ? this.freeBytes + piece.length : 0
      await this.#drained()
    }
  }

  async end(): Promise<void> {
    this.assertOpen()
    const surplusBytes = this.#reserveEnd - this.#reserveStart - BODY_LAST_BYTES_MAX
    if (surplusBytes > 0) this.#spend(surplusBytes)
    await this.#drained()
    const last = this.#reserve.subarray(this.#reserveStart, this.#reserveEnd)
    this.bytesWritten += last.length
    this.socket.end(last)
  }

  /** Passes on the reserve and the chunk except their last bytes. At most half is kept, so that some bytes always move. */
  #passButReserve(chunk: Uint8Array): void {
    const heldBytes = this.#reserveEnd - this.#reserveStart
    const totalBytes = heldBytes + chunk.length
    const keptBytes = Math.min(BODY_RESERVE_BYTES, Math.ceil(totalBytes / 2))
    this.#spend(Math.min(heldBytes, totalBytes - keptBytes))
    // The kept bytes of the old reserve come first. If there are any, the whole chunk is kept behind them.
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
    this.#isDrained = this.socket.write(bytes)
    if (this.#isDrained) this.noteProgress()
  }

  #spend(sizeBytes: number): void {
    const start = this.#reserveStart
    this.#reserveStart += sizeBytes
    this.#pass(this.#reserve.subarray(start, this.#reserveStart))
  }

  /** The reserve is empty. */
  #isSpent(): boolean {
    return this.#reserveStart === this.#reserveEnd
  }

  /** Resolves when the backlog is gone, or the reserve is empty: then the next chunk is the offer. */
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
