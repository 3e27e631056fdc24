// Estimates the progress of an order-book answer. Its rows are known before its first byte; the bytes of a row are taken from
// earlier answers of the same form.

import type { LobQuery } from '../../shared/lob-task.ts'
import type { LobStream } from './lob-stream.ts'

/** The bytes of a row depend mainly on these. */
function formOf({ format, levels, columns }: LobQuery): string {
  return `${format} ${levels} ${columns.length}`
}

export class LobProgress {
  /** Of the last complete answer, by its form; there are some hundred forms at most. */
  readonly #bytesPerRow = new Map<string, number>()

  /** Learns from an answer that was sent completely. */
  learn(query: LobQuery, { head, bytesGiven }: LobStream): void {
    if (head.rows > 0) this.#bytesPerRow.set(formOf(query), bytesGiven / head.rows)
  }

  /** The share of an answer that has been sent; null before any complete answer of its form. */
  of(query: LobQuery, { head, bytesGiven }: LobStream): number | null {
    const bytesPerRow = this.#bytesPerRow.get(formOf(query))
    return bytesPerRow === undefined || head.rows === 0 ? null : bytesGiven / (head.rows * bytesPerRow)
  }
}
