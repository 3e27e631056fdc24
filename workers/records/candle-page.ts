// The last stage of the candle pipeline: the page of the answer.

import { type Candle, CandleRows } from './candle-rows.ts'
import { PageCut } from './counted-page.ts'

/** Keeps one page: skips the candles before it, and sets `hasMore` at the first candle after it. */
export class CandlePage {
  readonly page: CandleRows
  readonly #cut: PageCut
  hasMore = false

  /** `rowsExpected` is only the initial capacity. */
  constructor(limit: number, offset: number, rowsExpected: number) {
    this.page = new CandleRows(Math.min(limit, rowsExpected))
    this.#cut = new PageCut(offset, limit)
  }

  add(candle: Candle): void {
    const { from, to } = this.#cut.next(1)
    if (from < to) this.page.push(candle)
    else if (from === 0) this.hasMore = true
  }

  take(rows: CandleRows): void {
    const { from, to } = this.#cut.next(rows.length)
    this.page.copyAll(rows, from, to)
    if (to < rows.length) this.hasMore = true
  }
}
