// The forward fill: each missing candle between two traded candles of a market has the previous close as its prices, volume 0
// and the same open interest. A gap that crosses an end of the window is filled inside the window. Nothing is filled after a
// market's last traded candle. Input and output are ordered by (end, market).

import { CandleHeap } from './candle-heap.ts'
import type { LastCandle } from './candle-lake.ts'
import { CandleRows, type CandleSink } from './candle-rows.ts'

/** The ends of a market's regular candles. */
export interface CandleGrid {
  /** The end that follows the candle that ends at `endMs`. */
  next(market: string, endMs: number): number
  /** The first end at or after `fromMs`, for a market whose last candle ended at `endMs`. */
  firstFrom(market: string, endMs: number, fromMs: number): number
}

export interface CandleFillOptions {
  readonly grid: CandleGrid
  readonly fromMs: number
  readonly toMs: number
  /** The end of the market's last traded candle, which may be after the window. */
  readonly lastTradeMs: (market: string) => number
  readonly next: CandleSink
}

/** A market between two traded candles. `endMs` is the next candle to fill. */
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

  /** Takes a market's last traded candle before the window: at most once for each market, before the first row. */
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

  /** Fills every gap up to (endMs, market), exclusive. */
  #fillBefore(endMs: number, market: string): void {
    const { grid, toMs, next } = this.#options
    for (;;) {
      const gap = this.#heap.first
      if (gap === undefined || next.isFull) return
      if (gap.endMs > endMs || (gap.endMs === endMs && gap.market >= market)) return
      // A traded candle may have closed the gap meanwhile.
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
