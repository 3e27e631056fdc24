// The quotes of several markets on one time axis, one column for each market, as uPlot needs them. Rows must arrive ordered
// by time, then market. A market that first appears later has null before.

import type { Snapshot } from '../clients/typescript/bookcast.ts'
import { NS_PER_SECOND } from '../shared/utc-date.ts'
import { quoteMid } from './quote.ts'

export type QuoteRow = Pick<Snapshot, 'ts' | 'market_id' | 'best_bid' | 'best_ask'>

export interface MarketLine {
  readonly market: string
  /** Cents, 0 without a bid; null without a row. */
  readonly bids: (number | null)[]
  readonly asks: (number | null)[]
  /** The mid price. An absent bid counts as 0, an absent ask as 100. null if the book is empty or unknown. */
  readonly mids: (number | null)[]
}

export class MarketLines {
  /** ms since the epoch, ascending. */
  readonly times: number[] = []
  readonly #lines = new Map<string, MarketLine>()

  get lines(): MarketLine[] {
    return [...this.#lines.values()]
  }

  add(rows: readonly QuoteRow[]): void {
    for (const { ts, market_id: market, best_bid: bid, best_ask: ask } of rows) {
      const ms = ts / (NS_PER_SECOND / 1000)
      if (this.times.at(-1) !== ms) this.#beginTick(ms)
      const line = this.#lines.get(market) ?? this.#beginLine(market)
      const index = this.times.length - 1
      line.bids[index] = bid
      line.asks[index] = ask
      line.mids[index] = quoteMid(bid, ask)
    }
  }

  /** Whether any market has a known book. */
  isKnown(index: number): boolean {
    for (const { mids } of this.#lines.values()) if (mids[index] !== null) return true
    return false
  }

  #beginTick(ms: number): void {
    this.times.push(ms)
    for (const { bids, asks, mids } of this.#lines.values()) {
      bids.push(null)
      asks.push(null)
      mids.push(null)
    }
  }

  #beginLine(market: string): MarketLine {
    const nothing = (): null[] => this.times.map(() => null)
    const line = { market, bids: nothing(), asks: nothing(), mids: nothing() }
    this.#lines.set(market, line)
    return line
  }
}

/** The index of the tick that contains an instant; null if there is none, as before the first tick and where rows are missing. */
export function tickAt(times: readonly number[], ms: number, tickMs: number): number | null {
  const index = indexAt(times, ms)
  const startMs = times[index]
  return startMs !== undefined && startMs <= ms && ms < startMs + tickMs ? index : null
}

/** The index of the last of `times` that is not after `ms`; 0 before all of them. */
export function indexAt(times: readonly number[], ms: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((times[middle] ?? 0) <= ms) low = middle + 1
    else high = middle
  }
  return Math.max(0, low - 1)
}
