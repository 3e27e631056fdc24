// Rolls candles up to longer ones, and fills the gaps between them. A longer candle has the open of the first, the highest high,
// the lowest low, close and open interest of the last, the sum of the volumes, and the end of its bucket. A filled candle has the
// previous close as its prices, volume 0 and the same open interest. Nothing is filled after a market's last trade. Input and
// output are ordered by (end, market).

import type { LastCandle } from './candle-lake.ts'
import type { CandlePage } from './candle-page.ts'
import type { Candle, CandleRows } from './candle-rows.ts'

/** The ends of each market's candles. */
export interface CandleGrid {
  /** The end of the candle that a stored candle of this market and end becomes a part of. */
  endOf(market: string, endMs: number): number
  /** The first end after `endMs`, the end of a candle, that is not before the window. */
  endAfter(market: string, endMs: number): number
}

/** What a fill takes from outside the window. */
export interface CandleFill {
  /** The last traded candle before the window, of each market that trades in or after the window. */
  readonly bases: readonly LastCandle[]
  /** By market: the end of its last traded candle, which may be after the window. */
  readonly lastMs: ReadonlyMap<string, number>
}

export interface CandleBucketsOptions {
  readonly grid: CandleGrid
  /** Candles must end in [fromMs, toMs). Earlier ones only start a fill. */
  readonly fromMs: number
  readonly toMs: number
  /** Undefined: gaps are not filled. */
  readonly fill: CandleFill | undefined
  readonly page: CandlePage
}

export class CandleBuckets {
  readonly #options: CandleBucketsOptions
  /** The next candle of each market: one that may still grow, or a filled one that a traded one may replace. */
  readonly #next = new Map<string, Candle>()
  /** These candles, and replaced ones, by their end in ascending order. */
  readonly #buckets: { readonly endMs: number; readonly candles: Candle[] }[] = []
  #lastEndMs = -Infinity

  constructor(options: CandleBucketsOptions) {
    this.#options = options
    for (const base of options.fill?.bases ?? []) this.#fillAfter(base)
  }

  take(rows: CandleRows): void {
    const { grid } = this.#options
    for (let at = 0; at < rows.length; at++) {
      const market = rows.market[at]!
      const rowEndMs = rows.endMs[at]!
      // The buckets of all markets that ended before this instant are complete.
      if (rowEndMs > this.#lastEndMs) this.#emitBefore(rowEndMs)
      this.#lastEndMs = rowEndMs
      const endMs = grid.endOf(market, rowEndMs)
      let candle = this.#next.get(market)
      if (candle?.endMs !== endMs) candle = this.#put(market, endMs, 0, 0)
      if (candle.filled === 0) add(candle, rows, at)
      else rows.read(at, candle)
    }
  }

  /** Passes on all candles. Called after the last one. */
  finish(): void {
    this.#emitBefore(Infinity)
  }

  /** Makes a filled candle the next one of its market. */
  #put(market: string, endMs: number, close: number, openInterest: number): Candle {
    const candle = {
      market,
      endMs,
      open: close,
      high: close,
      low: close,
      close,
      volume: 0,
      openInterest,
      filled: 1,
    }
    this.#next.set(market, candle)
    const buckets = this.#buckets
    let at = buckets.length
    while (at > 0 && buckets[at - 1]!.endMs > endMs) at--
    const known = buckets[at - 1]
    if (known?.endMs === endMs) known.candles.push(candle)
    else buckets.splice(at, 0, { endMs, candles: [candle] })
    return candle
  }

  #emitBefore(beforeMs: number): void {
    const { fromMs, toMs, page } = this.#options
    for (;;) {
      const [bucket] = this.#buckets
      if (bucket === undefined || bucket.endMs >= beforeMs || page.hasMore) return
      this.#buckets.shift()
      const { endMs, candles } = bucket
      if (candles.length > 1) candles.sort((a, b) => (a.market < b.market ? -1 : 1))
      for (const candle of candles) {
        if (this.#next.get(candle.market) !== candle) continue
        if (endMs >= fromMs && endMs < toMs) page.add(candle)
        this.#fillAfter(candle)
      }
    }
  }

  /** Puts the filled candle after another one, if there is one. */
  #fillAfter({ market, endMs, close, openInterest }: LastCandle): void {
    const { grid, toMs, fill } = this.#options
    const lastMs = fill?.lastMs.get(market)
    if (lastMs === undefined) return
    const nextMs = grid.endAfter(market, endMs)
    if (nextMs < lastMs && nextMs < toMs) this.#put(market, nextMs, close, openInterest)
  }
}

function add(candle: Candle, { high, low, close, volume, openInterest }: CandleRows, at: number): void {
  candle.high = Math.max(candle.high, high[at]!)
  candle.low = Math.min(candle.low, low[at]!)
  candle.close = close[at]!
  candle.volume += volume[at]!
  candle.openInterest = openInterest[at]!
}
