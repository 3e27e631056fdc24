// How far an order-book answer is: its rows are known before its first byte, and what a row of its form takes from the
// answers that were given before it.

import type { LobQuery } from '../../shared/lob-task.ts'
import type { LobStream } from './lob-stream.ts'

/** The bytes of a row depend mostly on these. */
function formOf({ format, levels, columns }: LobQuery): string {
  return `${format} ${levels} ${columns.length}`
}

export class LobProgress {
  /** Of the last whole answer, by its form: there are some hundreds at most. */
  readonly #bytesPerRow = new Map<string, number>()

  /** All of an answer has been given. */
  learn(query: LobQuery, { head, bytesGiven }: LobStream): void {
    if (head.rows > 0) this.#bytesPerRow.set(formOf(query), bytesGiven / head.rows)
  }

  /** The share of an answer that has been given; null while no answer of its form was. */
  of(query: LobQuery, { head, bytesGiven }: LobStream): number | null {
    const bytesPerRow = this.#bytesPerRow.get(formOf(query))
    return bytesPerRow === undefined || head.rows === 0 ? null : bytesGiven / (head.rows * bytesPerRow)
  }
}
