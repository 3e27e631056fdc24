// What is counted of a market while a date's rows are folded, for the report. It is counted row by row, so
// nothing is allocated for one.

import { EVENT_CLEAR, EVENT_GAP } from '../../shared/lob-v1.ts'

/** Buckets of a lag: eight for each doubling from one microsecond on, up to some 19 hours. */
const BUCKETS_PER_DOUBLING = 8
const DOUBLINGS = 36
const NS_PER_MICROSECOND = 1_000
const MICROSECONDS_PER_MS = 1_000

/** How late messages came, in buckets: a percentile is right to a tenth of itself, whatever was counted. */
export class LagHistogram {
  #counts: Uint32Array | undefined
  count = 0

  /** `ns` below one microsecond, as when clocks differ, counts as one. */
  add(ns: number): void {
    this.#counts ??= new Uint32Array(BUCKETS_PER_DOUBLING * DOUBLINGS)
    const bucket =
      ns <= NS_PER_MICROSECOND ? 0 : Math.floor(Math.log2(ns / NS_PER_MICROSECOND) * BUCKETS_PER_DOUBLING)
    this.#counts[Math.min(bucket, this.#counts.length - 1)]!++
    this.count++
  }

  /** The lag in milliseconds that `share` (0 to 1) of the messages do not exceed; undefined without messages. */
  percentileMs(share: number): number | undefined {
    let left = Math.max(1, Math.ceil(share * this.count))
    for (const [bucket, count] of this.#counts?.entries() ?? []) {
      left -= count
      if (left <= 0) return 2 ** ((bucket + 1) / BUCKETS_PER_DOUBLING) / MICROSECONDS_PER_MS
    }
    return undefined
  }

  clear(): void {
    this.#counts?.fill(0)
    this.count = 0
  }
}

/** A market's figures of one date; levels of a snapshot count as messages of their own. */
export class DateFigures {
  /** Snapshots over a book that was known before, or had been. */
  resets = 0
  /** Changes while no book was known. */
  changesWithoutBook = 0
  rows = 0
  /** Receive time minus the exchange's, of messages that have both. */
  readonly lag = new LagHistogram()
  #hasHadBook = false

  /** The market's book is known before anything is counted. */
  startWithBook(): void {
    this.#hasHadBook = true
  }

  startDate(): void {
    this.resets = 0
    this.changesWithoutBook = 0
    this.rows = 0
    this.lag.clear()
  }

  /** A row of a message; `isKnown` says whether its book was known before it. */
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
