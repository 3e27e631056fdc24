// The catalogue of series and markets in memory, so that requests for it need no query. catalogue-feed.ts fills it and keeps
// it fresh. While the relational store is unreachable, it answers with the last known data.

import { ApiError } from '../../shared/errors.ts'
import { MS_PER_DAY, utcDateStartMs } from '../../shared/utc-date.ts'
import type { LobCatalogueEntry, LobQuery } from '../../shared/lob-task.ts'
import type { AnswerCache } from '../answers/answer-cache.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import type { Validator, WholeReply } from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'
import { quote } from '../query/parameter-parser.ts'
import {
  catalogueReply,
  marketJson,
  type MarketRow,
  type SeriesEntry,
  seriesEntry,
  type SeriesRow,
} from './catalogue-entry.ts'
import { MarketIndex } from './market-index.ts'

/** The order-book worker gets no close times that are further than this before a request's first date. */
const LOB_CLOSED_LOOK_BACK_DAYS = 366

/** Null sets no condition; bounds of the close time are inclusive, ms since the epoch. */
export interface MarketFilter {
  readonly series: string | null
  readonly station: string | null
  readonly closeFromMs: number | null
  readonly closeToMs: number | null
}

export interface PageBounds {
  readonly limit: number
  readonly offset: number
}

interface PageRecords {
  readonly records: readonly string[]
  readonly hasMore: boolean
}

/** One page of a list. */
export interface CataloguePage {
  readonly reply: WholeReply
  /** Whether there are records after this page. */
  readonly hasMore: boolean
}

/** What is kept with a page's body. */
interface PageFacts {
  /** The catalogue's generation from which the page was made. */
  readonly generation: number
  readonly page: CataloguePage
}

export class Catalogue {
  readonly #cachePolicy: CachePolicy
  readonly #answers: AnswerCache | undefined
  #series: ReadonlyMap<string, SeriesEntry> = new Map()
  #sortedSeries: readonly SeriesEntry[] = []
  readonly #markets = new MarketIndex()
  #isLoaded = false
  /** Identifies the state of the data; null while it may mix two versions. */
  #version: string | null = null
  /** Incremented with every change of the data or of `#version`. */
  #generation = 0

  /** @param answers caches pages of lists; without it they are not cached */
  constructor(cachePolicy: CachePolicy, answers?: AnswerCache) {
    this.#cachePolicy = cachePolicy
    this.#answers = answers
  }

  get isLoaded(): boolean {
    return this.#isLoaded
  }

  get marketCount(): number {
    return this.#markets.count
  }

  replaceSeries(rows: readonly SeriesRow[]): void {
    const entries = rows.map((row) => seriesEntry(row, this.#cachePolicy.revalidate))
    this.#generation += 1
    this.#sortedSeries = entries.toSorted((left, right) => (left.ticker < right.ticker ? -1 : 1))
    this.#series = new Map(entries.map((entry) => [entry.ticker, entry]))
  }

  putMarkets(rows: readonly MarketRow[]): void {
    this.#generation += 1
    for (const row of rows) this.#markets.put(row)
  }

  /** All rows have been put in. `version` is null if they may mix two states. */
  markLoaded(version: string | null): void {
    this.#generation += 1
    this.#isLoaded = true
    this.#version = version
  }

  /** Changes are being put in, so lists have no ETag until `markLoaded`. */
  markChanging(): void {
    this.#generation += 1
    this.#version = null
  }

  /** @throws {ApiError} `unknown_series`, or `store_unavailable` before the first load */
  seriesReply(ticker: string): WholeReply {
    const entry = this.#series.get(ticker)
    if (entry !== undefined) return entry.reply
    this.#demandLoaded()
    throw new ApiError('unknown_series', `No series is named ${quote(ticker)}.`)
  }

  /** @throws {ApiError} `unknown_market`, or `store_unavailable` before the first load */
  marketReply(ticker: string): WholeReply {
    const row = this.#markets.find(ticker)
    if (row !== undefined) {
      const json = marketJson(row)
      return catalogueReply(json, 1, this.#validator(json))
    }
    this.#demandLoaded()
    throw new ApiError('unknown_market', `No market is named ${quote(ticker)}.`)
  }

  seriesPage(active: boolean | null, { limit, offset }: PageBounds): CataloguePage {
    this.#demandLoaded()
    return this.#page(['series', `${active}`, `${limit}`, `${offset}`], () => {
      const wanted =
        active === null ? this.#sortedSeries : this.#sortedSeries.filter((entry) => entry.isActive === active)
      const records = wanted.slice(offset, offset + limit).map((entry) => entry.json)
      return { records, hasMore: wanted.length > offset + limit }
    })
  }

  /** @throws {ApiError} `unknown_series` when the filter names a series that is not in the catalogue */
  marketPage(filter: MarketFilter, bounds: PageBounds): CataloguePage {
    this.#demandLoaded()
    const names = ['markets', JSON.stringify(filter), `${bounds.limit}`, `${bounds.offset}`]
    return this.#page(names, () => this.#marketRecords(filter, bounds))
  }

  #marketRecords(filter: MarketFilter, { limit, offset }: PageBounds): PageRecords {
    const rows = filter.series === null ? this.#markets.all : this.#marketsOfSeries(filter.series)
    const records: string[] = []
    let skipped = 0
    let hasMore = false
    for (const row of rows) {
      if (!this.#isWanted(row, filter)) continue
      if (skipped < offset) skipped += 1
      else if (records.length < limit) records.push(marketJson(row))
      else {
        hasMore = true
        break
      }
    }
    return { records, hasMore }
  }

  /** Whether a market or series of the order-book endpoint is in the catalogue. */
  knowsForLob({ market, series }: LobQuery): boolean {
    if (market !== null) return this.#markets.find(market) !== undefined
    const name = series ?? ''
    return this.#series.has(name) || this.#markets.ofEvent(name).length > 0
  }

  /** What the catalogue knows for an order-book worker; null if it has no market for the request. */
  findForLob({
    market,
    series,
    dates,
  }: Pick<LobQuery, 'market' | 'series' | 'dates'>): LobCatalogueEntry | null {
    const rows = this.#lobMarkets(market, series)
    const first = rows[0]
    if (first === undefined) return null
    const isEvent = market === null && !this.#series.has(series ?? '')
    const startMs = (utcDateStartMs(dates[0] ?? '') ?? 0) - LOB_CLOSED_LOOK_BACK_DAYS * MS_PER_DAY
    const endMs = (utcDateStartMs(dates.at(-1) ?? '') ?? 0) + MS_PER_DAY
    const closing = rows.filter(({ close_time }) => close_time >= startMs && close_time < endMs)
    return {
      series: market !== null || isEvent ? first.series_ticker : null,
      markets: isEvent ? rows.map((row) => row.ticker) : null,
      closesAtMs: Object.fromEntries(closing.map((row) => [row.ticker, row.close_time])),
    }
  }

  #lobMarkets(market: string | null, series: string | null): readonly MarketRow[] {
    if (market !== null) {
      const row = this.#markets.find(market)
      return row === undefined ? [] : [row]
    }
    return this.#markets.ofSeriesOrEvent(series ?? '')
  }

  /** The markets of a series, or of an event (contract.md 8). */
  #marketsOfSeries(ticker: string): readonly MarketRow[] {
    const rows = this.#markets.ofSeriesOrEvent(ticker)
    if (rows.length === 0 && !this.#series.has(ticker))
      throw new ApiError('unknown_series', `No series is named ${quote(ticker)}.`)
    return rows
  }

  #isWanted(row: MarketRow, { station, closeFromMs, closeToMs }: MarketFilter): boolean {
    if (closeFromMs !== null && row.close_time < closeFromMs) return false
    if (closeToMs !== null && row.close_time > closeToMs) return false
    if (station === null) return true
    return (row.station_code ?? this.#series.get(row.series_ticker)?.station) === station
  }

  /** The page of these names: the cached one if nothing has changed since it was made. */
  #page(names: readonly string[], make: () => PageRecords): CataloguePage {
    const answers = this.#answers
    const key = names.join(' ')
    const kept = answers?.find<PageFacts>(key)
    if (answers !== undefined && kept?.facts.generation === this.#generation) {
      answers.figures.hits += 1
      return kept.facts.page
    }
    const { records, hasMore } = make()
    const validator = this.#version === null ? undefined : this.#validator(this.#version, ...names)
    const page = { reply: catalogueReply(`[${records.join(',')}]`, records.length, validator), hasMore }
    if (answers === undefined) return page
    answers.figures.misses += 1
    return answers.put(key, page.reply.body, (ready): PageFacts => {
      const reply = { ...page.reply, ready }
      return { generation: this.#generation, page: { ...page, reply } }
    }).facts.page
  }

  #validator(...names: readonly string[]): Validator {
    return { etag: strongEtag(...names), cacheControl: this.#cachePolicy.revalidate }
  }

  #demandLoaded(): void {
    if (!this.#isLoaded)
      throw new ApiError(
        'store_unavailable',
        'The catalogue has not been read yet: the relational store does not respond.',
      )
  }
}
