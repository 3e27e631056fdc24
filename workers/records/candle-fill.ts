// The forward fill: between two traded candles of a market every missing one takes the close before it, with no volume
// and the open interest unchanged. A gap that began before the window is filled inside it, one that ends behind the
// window is filled to its end; after a market's last traded candle nothing is. Candles come and leave by (end, market).

import { CandleHeap } from './candle-heap.ts'
import type { LastCandle } from './candle-lake.ts'
import { CandleRows, type CandleSink } from './candle-rows.ts'

/** The regular ends of a market's candles. */
export interface CandleGrid {
  /** The end that follows the candle that ends at `endMs`. */
  next(market: string, endMs: number): number
  /** The first end at or after `fromMs` that follows a candle which ended before it. */
  firstFrom(market: string, endMs: number, fromMs: number): number
}

export interface CandleFillOptions {
  readonly grid: CandleGrid
  readonly fromMs: number
  readonly toMs: number
  /** The end of the market's last traded candle, also behind the window. */
  readonly lastTradeMs: (market: string) => number
  readonly next: CandleSink
}

/** A market between two traded candles: the next candle to be filled. */
interface Gap extends LastCandle {
  endMs: number
  readonly lastTradeMs: number
}

export class CandleFill implements CandleSink {
  readonly #options: CandleFillOptions
  readonly #heap = new CandleHeap<Gap>()
  readonly #gapOf = new Map<string, Gap>()
  readonly #filled = new CandleRows(1)

  constructor(options: CandleFillOptions) {
    this.#options = options
  }

  get isFull(): boolean {
    return this.#options.next.isFull
  }

  /** The last traded candle before the window; each market's at most once, before the first row. */
  begin({ market, endMs, close, openInterest }: LastCandle): void {
    const { grid, fromMs } = this.#options
    this.#open(market, grid.firstFrom(market, endMs, fromMs), close, openInterest)
  }

  row(market: string, endMs: number, values: CandleRows, at: number): void {
    this.#fillBefore(endMs, market)
    if (this.isFull) return
    this.#gapOf.delete(market)
    this.#options.next.row(market, endMs, values, at)
    this.#open(market, this.#options.grid.next(market, endMs), values.close[at]!, values.openInterest[at]!)
  }

  finish(): void {
    this.#fillBefore(Infinity, '')
    this.#options.next.finish()
  }

  #open(market: string, endMs: number, close: number, openInterest: number): void {
    const lastTradeMs = this.#options.lastTradeMs(market)
    if (endMs >= lastTradeMs || endMs >= this.#options.toMs) return
    const gap: Gap = { market, endMs, lastTradeMs, close, openInterest }
    this.#gapOf.set(market, gap)
    this.#heap.push(gap)
  }

  /** Fills every gap up to (endMs, market), that one excluded. */
  #fillBefore(endMs: number, market: string): void {
    const { grid, toMs, next } = this.#options
    for (;;) {
      const gap = this.#heap.first
      if (gap === undefined || next.isFull) return
      if (gap.endMs > endMs || (gap.endMs === endMs && gap.market >= market)) return
      // A traded candle may have closed it meanwhile.
      const isOpen = this.#gapOf.get(gap.market) === gap
      if (isOpen) {
        this.#emit(gap)
        gap.endMs = grid.next(gap.market, gap.endMs)
      }
      if (isOpen && gap.endMs < gap.lastTradeMs && gap.endMs < toMs) this.#heap.settleFirst()
      else this.#heap.shift()
    }
  }

  #emit({ market, endMs, close, openInterest }: Gap): void {
    const rows = this.#filled
    rows.clear()
    const at = rows.append(market, endMs)
    rows.open[at] = close
    rows.high[at] = close
    rows.low[at] = close
    rows.close[at] = close
    rows.volume[at] = 0
    rows.openInterest[at] = openInterest
    rows.filled[at] = 1
    this.#options.next.row(market, endMs, rows, at)
  }
}
