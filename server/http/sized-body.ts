// Writes one body of known length to a uWebSockets response at the pace of its client, and cuts off a client that stalls.
// Such a body needs no chunk lines. The library reports how much of each offer the kernel took and keeps nothing. So a chunk
// is one system call while there is room, and nothing is buffered for a slow client.

import type { BodySink } from './exchange.ts'
import { PacedBody, type PaceLimits } from './paced-body.ts'

/** The two operations on a response that a sized body needs. */
export interface SizedSocket {
  /** Takes as many bytes as there is room for, and returns how many. */
  offer(bytes: Uint8Array): number
  close(): void
}

export class SizedBody extends PacedBody<SizedSocket> implements BodySink {
  readonly #sizeBytes: number
  /** The part of the current chunk that is not taken yet. */
  #left: Uint8Array = new Uint8Array(0)

  constructor(socket: SizedSocket, { sizeBytes, ...limits }: PaceLimits & { readonly sizeBytes: number }) {
    super(socket, limits)
    this.#sizeBytes = sizeBytes
  }

  async write(chunk: Uint8Array): Promise<void> {
    this.assertOpen()
    if (this.bytesWritten + chunk.length > this.#sizeBytes) throw this.#otherSize('more than')
    this.#left = chunk
    this.offer()
    while (this.#left.length > 0) await this.wait()
  }

  async end(): Promise<void> {
    this.assertOpen()
    if (this.bytesWritten < this.#sizeBytes) throw this.#otherSize('less than')
    // The head is sent with the first offer.
    if (this.#sizeBytes === 0) this.offer()
  }

  protected offer(): boolean {
    const taken = this.socket.offer(this.#left)
    this.#left = this.#left.subarray(taken)
    this.bytesWritten += taken
    if (taken === 0) return false
    this.pace.took(taken)
    this.noteProgress()
    return true
  }

  #otherSize(what: string): Error {
    return new Error(`an answer of ${this.#sizeBytes} bytes has ${what} that`)
  }
}
