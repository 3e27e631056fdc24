// The last stages of the candle pipeline: the window [from, to) in which candles must end, and the page of the answer.

import type { CandleFill } from './candle-fill.ts'
import type { LastCandle } from './candle-lake.ts'
import { CandleRows, type CandleSink } from './candle-rows.ts'

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

  row(market: string, endMs: number, values: CandleRows, at: number): void {
    if (this.#toSkip > 0) this.#toSkip--
    else if (this.page.length < this.#limit) this.page.copy(market, endMs, values, at)
    else this.hasMore = true
  }

  rows(values: CandleRows, from: number, to: number): void {
    const skipped = Math.min(this.#toSkip, to - from)
    this.#toSkip -= skipped
    const taken = Math.min(to - from - skipped, this.#limit - this.page.length)
    this.page.copyAll(values, from + skipped, from + skipped + taken)
    if (from + skipped + taken < to) this.hasMore = true
  }

  finish(): void {}
}

/** Passes on the candles of the window. With a forward fill, a market's last candle before the window starts its fill. */
export class CandleWindow implements CandleSink {
  readonly #fromMs: number
  readonly #toMs: number
  readonly #fill: CandleFill | undefined
  readonly #next: CandleSink
  readonly #before = new Map<string, LastCandle>()
  #isOpen = false

  constructor(options: { fromMs: number; toMs: number; fill: CandleFill | undefined; next: CandleSink }) {
    this.#fromMs = options.fromMs
    this.#toMs = options.toMs
    this.#fill = options.fill
    this.#next = options.fill ?? options.next
  }

  get isFull(): boolean {
    return this.#next.isFull
  }

  before(candle: LastCandle): void {
    if (this.#fill !== undefined) this.#before.set(candle.market, candle)
  }

  row(market: string, endMs: number, values: CandleRows, at: number): void {
    if (endMs >= this.#toMs) return
    if (endMs < this.#fromMs) {
      this.before({ market, endMs, close: values.close[at]!, openInterest: values.openInterest[at]! })
      return
    }
    this.#open()
    this.#next.row(market, endMs, values, at)
  }

  rows(values: CandleRows, from: number, to: number): void {
    const isInside = values.endMs[from]! >= this.#fromMs && values.endMs[to - 1]! < this.#toMs
    if (isInside && this.#next.rows !== undefined) this.#next.rows(values, from, to)
    else for (let at = from; at < to; at++) this.row(values.market[at]!, values.endMs[at]!, values, at)
  }

  finish(): void {
    this.#open()
    this.#next.finish()
  }

  #open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    for (const candle of this.#before.values()) this.#fill?.begin(candle)
    this.#before.clear()
  }
}
