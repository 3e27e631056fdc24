// Writes one chunked body over node:http at the pace of its client, and cuts off a client that stalls. Node reports for each
// write when the kernel has taken all of it, so the writer gives it one piece at a time. The process buffers only that piece,
// and a client makes progress when it has taken it. Pieces are short until many bytes have gone through without a wait.

import type { BodySink } from './exchange.ts'
import { PacedBody } from './paced-body.ts'

/** The three operations on a response that a body needs. */
interface PieceSocket {
  /** Calls `onTaken` when the kernel has the bytes, or with an error when it never will. */
  write(bytes: Uint8Array, onTaken: (error?: Error | null) => void): void
  end(): void
  close(): void
}

export class NodeBody extends PacedBody<PieceSocket> implements BodySink {
  /** The kernel has taken the last piece. */
  #isTaken = true

  async write(chunk: Uint8Array): Promise<void> {
    for (const piece of this.piecesOf(chunk)) await this.#pass(piece)
  }

  async end(): Promise<void> {
    this.assertOpen()
    this.socket.end()
  }

  async #pass(piece: Uint8Array): Promise<void> {
    this.assertOpen()
    this.bytesWritten += piece.length
    this.pace.took(piece.length)
    const startedMs = performance.now()
    this.#isTaken = false
    this.socket.write(piece, (error) => {
      if (error) this.abort('client_gone')
      this.#isTaken = true
      this.onWritable()
    })
    if (!this.#isTaken) await this.wait()
    this.assertOpen()
    const isBehind = performance.now() - startedMs > CLIENT_BEHIND_MS
    this.freeBytes = isBehind ? 0 : this.freeBytes + piece.length
  }

  protected offer(): boolean {
    return this.#isTaken
  }
}

/** A write that takes longer than this has waited for the client. */
const CLIENT_BEHIND_MS = 20
