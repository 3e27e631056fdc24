// Rolls candles up to longer ones: open of the first, highest high, lowest low, close and open interest of the last, sum of
// the volumes. Input and output are ordered by (end, market); an output candle has the end of its bucket. The caller decides
// which bucket an instant belongs to, possibly per market (by the time zone of its station).

import { CandleRows, type CandleSink } from './candle-rows.ts'

/** Returns the end of the bucket that a candle of this market and end belongs to. */
export type BucketEnd = (market: string, endMs: number) => number

export class CandleAggregate implements CandleSink {
  readonly #bucketEnd: BucketEnd
  readonly #next: CandleSink
  /** Open buckets by their end: one row for each market, and the index of that row. */
  readonly #open = new Map<number, { readonly rows: CandleRows; readonly indexOf: Map<string, number> }>()
  #earliestEnd = Infinity
  #lastEndMs = -Infinity

  constructor(bucketEnd: BucketEnd, next: CandleSink) {
    this.#bucketEnd = bucketEnd
    this.#next = next
  }

  get isFull(): boolean {
    return this.#next.isFull
  }

  row(market: string, endMs: number, values: CandleRows, at: number): void {
    if (endMs > this.#lastEndMs) {
      this.#lastEndMs = endMs
      // Buckets of all markets that ended before this instant are complete.
      if (this.#earliestEnd < endMs) this.#emit(endMs)
    }
    const bucketEnd = this.#bucketEnd(market, endMs)
    let bucket = this.#open.get(bucketEnd)
    if (bucket === undefined) {
      bucket = { rows: new CandleRows(8), indexOf: new Map() }
      this.#open.set(bucketEnd, bucket)
      this.#earliestEnd = Math.min(this.#earliestEnd, bucketEnd)
    }
    const { rows, indexOf } = bucket
    const index = indexOf.get(market)
    if (index === undefined) indexOf.set(market, rows.copy(market, bucketEnd, values, at))
    else mergeInto(rows, index, values, at)
  }

  finish(): void {
    this.#emit(Infinity)
    this.#next.finish()
  }

  /** Passes on the buckets that end before an instant. */
  #emit(beforeMs: number): void {
    const ends = [...this.#open.keys()].filter((end) => end < beforeMs).toSorted((a, b) => a - b)
    for (const end of ends) {
      const { rows, indexOf } = this.#open.get(end)!
      for (const market of [...indexOf.keys()].toSorted()) {
        this.#next.row(market, end, rows, indexOf.get(market)!)
      }
      this.#open.delete(end)
    }
    this.#earliestEnd = Math.min(Infinity, ...this.#open.keys())
  }
}

function mergeInto(rows: CandleRows, index: number, values: CandleRows, at: number): void {
  rows.high[index] = Math.max(rows.high[index]!, values.high[at]!)
  rows.low[index] = Math.min(rows.low[index]!, values.low[at]!)
  rows.close[index] = values.close[at]!
  rows.volume[index] = rows.volume[index]! + values.volume[at]!
  rows.openInterest[index] = values.openInterest[at]!
}
