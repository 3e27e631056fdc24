// The last stage of the candle pipeline: the page of the answer.

import { type Candle, CandleRows, type CandleSink } from './candle-rows.ts'

/** Keeps one page: skips the candles before it, and sets `hasMore` at the first candle after it. */
export class CandlePage implements CandleSink {
  readonly page: CandleRows
  readonly #limit: number
  #toSkip: number
  hasMore = false

  /** `rowsExpected` is only the initial capacity. */
  constructor(limit: number, offset: number, rowsExpected: number) {
    this.page = new CandleRows(Math.min(limit, rowsExpected))
    this.#limit = limit
    this.#toSkip = offset
  }

  get isFull(): boolean {
    return this.hasMore
  }

  add(candle: Candle): void {
    if (this.#toSkip > 0) this.#toSkip--
    else if (this.page.length < this.#limit) this.page.push(candle)
    else this.hasMore = true
  }

  rows(values: CandleRows, from: number, to: number): void {
    const skipped = Math.min(this.#toSkip, to - from)
    this.#toSkip -= skipped
    const taken = Math.min(to - from - skipped, this.#limit - this.page.length)
    this.page.copyAll(values, from + skipped, from + skipped + taken)
    if (from + skipped + taken < to) this.hasMore = true
  }
}
