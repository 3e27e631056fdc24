// Counts figures of a market for the report, while the rows of a date are folded. It runs per row and allocates nothing.

import { LagHistogram } from '../../shared/lag-histogram.ts'
import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'

/** A market's figures of one date; levels of a snapshot count as messages of their own. */
export class DateFigures {
  /** Snapshots of a market whose book had been known before. */
  resets = 0
  /** Changes while no book was known. */
  changesWithoutBook = 0
  rows = 0
  /** Receive time minus the exchange's, of messages that have both. */
  readonly lag = new LagHistogram()
  #hasHadBook = false

  /** The market's book is known when counting starts. */
  startWithBook(): void {
    this.#hasHadBook = true
  }

  startDate(): void {
    this.resets = 0
    this.changesWithoutBook = 0
    this.rows = 0
    this.lag.clear()
  }

  /** Counts a row of a message; `isKnown` says whether the book was known before it. */
  row(event: number, isKnown: boolean, ts: bigint, recvTs: bigint): void {
    this.rows++
    if (recvTs !== ts) this.lag.add(Number(recvTs - ts))
    if (event === EVENT_CLEAR) {
      if (this.#hasHadBook) this.resets++
      this.#hasHadBook = true
    } else if (!isKnown && event !== EVENT_GAP) {
      this.changesWithoutBook++
    }
  }
}
