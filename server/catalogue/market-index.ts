// All markets by ticker, in ticker order, by series and by event. Changes come in batches. A batch replaces the markets that
// it names and adds new ones. No market is ever removed, because the exchange does not withdraw markets.

import type { MarketRow } from './catalogue-entry.ts'

function byTicker(left: MarketRow, right: MarketRow): number {
  return left.ticker < right.ticker ? -1 : left.ticker > right.ticker ? 1 : 0
}

/** A list that is sorted when it is read. */
class SortedMarkets {
  #sorted: readonly MarketRow[] = []
  #added: MarketRow[] = []

  add(row: MarketRow): void {
    this.#added.push(row)
  }

  get rows(): readonly MarketRow[] {
    if (this.#added.length > 0) {
      // The sort merges runs that are sorted already.
      this.#sorted = this.#sorted.concat(this.#added.toSorted(byTicker)).toSorted(byTicker)
      this.#added = []
    }
    return this.#sorted
  }
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }

export class MarketIndex {
  readonly #byTicker = new Map<string, Mutable<MarketRow>>()
  readonly #bySeries = new Map<string, SortedMarkets>()
  readonly #byEvent = new Map<string, SortedMarkets>()
  readonly #all = new SortedMarkets()

  get count(): number {
    return this.#byTicker.size
  }

  /** Adds a market, or updates the one with its ticker. A market never changes its event or series. */
  put(row: MarketRow): void {
    const known = this.#byTicker.get(row.ticker)
    if (known !== undefined) {
      known.station_code = row.station_code
      known.status = row.status
      known.result = row.result
      known.close_time = row.close_time
      return
    }
    const added = { ...row }
    this.#byTicker.set(row.ticker, added)
    this.#all.add(added)
    listOf(this.#bySeries, row.series_ticker).add(added)
    listOf(this.#byEvent, row.event_ticker).add(added)
  }

  find(ticker: string): MarketRow | undefined {
    return this.#byTicker.get(ticker)
  }

  /** In ticker order. */
  get all(): readonly MarketRow[] {
    return this.#all.rows
  }

  /** The markets of the series with this ticker; if there is none, of the event. */
  ofSeriesOrEvent(ticker: string): readonly MarketRow[] {
    return this.#bySeries.get(ticker)?.rows ?? this.ofEvent(ticker)
  }

  ofEvent(ticker: string): readonly MarketRow[] {
    return this.#byEvent.get(ticker)?.rows ?? []
  }
}

function listOf(lists: Map<string, SortedMarkets>, key: string): SortedMarkets {
  const known = lists.get(key)
  if (known !== undefined) return known
  const list = new SortedMarkets()
  lists.set(key, list)
  return list
}
