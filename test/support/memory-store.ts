// A relational store in memory: tests change its content, and can make it unavailable.

import type { CatalogueSource, ChangedMarketRow } from '../../server/catalogue/catalogue-feed.ts'
import type { SeriesRow } from '../../server/catalogue/catalogue-entry.ts'
import type { StoreServices } from '../../server/catalogue/store-services.ts'

export function seriesRow(ticker: string, row: Partial<SeriesRow> = {}): SeriesRow {
  return {
    ticker,
    measure_type: 'high',
    title: `Highest temperature of ${ticker}`,
    station_code: 'NYC',
    category: 'Climate and Weather',
    frequency: 'daily',
    tags: ['Daily temperature'],
    active: true,
    last_seen_at: Date.UTC(2026, 6, 3, 12, 0, 0, 250),
    ...row,
  }
}

export function marketRow(ticker: string, row: Partial<ChangedMarketRow> = {}): ChangedMarketRow {
  const [series = '', event = ''] = ticker.split('-')
  return {
    ticker,
    event_ticker: `${series}-${event}`,
    series_ticker: series,
    station_code: null,
    status: 'active',
    result: '',
    close_time: Date.UTC(2026, 6, 2, 3, 59),
    written_at: Date.UTC(2026, 6, 1),
    ...row,
  }
}

class StoreAway extends Error {}

export class MemoryStore implements StoreServices {
  readonly series = new Map<string, SeriesRow>()
  readonly markets = new Map<string, ChangedMarketRow>()
  isAway = false
  /** Rows of markets returned, for tests that count work. */
  marketsRead = 0
  #version = 0

  constructor(series: readonly SeriesRow[] = [], markets: readonly ChangedMarketRow[] = []) {
    this.put(series, markets)
  }

  /** Adds or replaces rows as one change. */
  put(series: readonly SeriesRow[], markets: readonly ChangedMarketRow[]): void {
    for (const row of series) this.series.set(row.ticker, row)
    for (const row of markets) this.markets.set(row.ticker, row)
    this.#version += 1
  }

  readonly ping = async (): Promise<boolean> => !this.isAway

  readonly ingestAges = async () => [{ source: 'kalshi', scope: 'KXHIGHNY', ageS: 12 }]

  readonly catalogue: CatalogueSource = {
    versions: async () => {
      if (this.isAway) throw new StoreAway()
      return new Map(['series', 'markets'].map((dataset) => [dataset, String(this.#version)]))
    },
    series: () => this.#batches([...this.series.values()]),
    markets: (sinceMs) => {
      const rows = [...this.markets.values()].filter((row) => row.written_at >= (sinceMs ?? 0))
      this.marketsRead += rows.length
      return this.#batches(rows)
    },
  }

  async *#batches<Row>(rows: readonly Row[]): AsyncGenerator<readonly Row[]> {
    for (let index = 0; index < rows.length; index += 2) {
      if (this.isAway) throw new StoreAway()
      yield rows.slice(index, index + 2)
    }
  }
}
