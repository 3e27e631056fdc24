// Which series' files answer a request, found in the lake itself: directories and the markets that footers list. A name
// that no file knows is refused with 404, so that "nothing there" never looks like "nothing happened".

import { readdirSync, statSync } from 'node:fs'
import { ApiError } from '../../shared/errors.ts'
import {
  dateOfLakeFileName,
  isSeriesName,
  lobSeriesDirectory,
  lobSourceDirectory,
  seriesOfTicker,
} from '../../shared/lake-layout.ts'
import { MARKET_SEARCH_FILES_MAX } from '../../shared/limits.ts'
import type { LobCatalogueEntry, LobQuery } from '../../shared/lob-task.ts'
import { lakeUnavailable } from '../lake/lake-file-error.ts'
import { LakeFile } from './lake-file.ts'

/** The series whose files are read, and which of their markets are wanted. */
export interface MarketSelection {
  readonly series: string
  readonly isWanted: (marketId: string) => boolean
}

/**
 * Finds what a query is about, asking the catalogue's series first; throws `unknown_market`, `unknown_series` or, for what
 * cannot be read, a 503.
 */
export function selectMarkets(
  lake: string,
  query: LobQuery,
  catalogue: LobCatalogueEntry | null = null,
): MarketSelection {
  const search = new MarketSearch(lake, query)
  const { market, series } = query
  if (series !== null) {
    if (search.datesOf(series).length > 0) return { series, isWanted: () => true }
    const isWanted = eventFilter(series, catalogue)
    const found = search.seriesWith(isWanted, catalogue?.series ?? seriesOfTicker(series))
    if (found !== undefined) return { series: found, isWanted }
    search.assertLakeIsThere()
    throw new ApiError(
      'unknown_series',
      `No ${query.source} series or event ${series} is known; the series with order books are ${search.describe()}.`,
    )
  }
  const isWanted = (id: string): boolean => id === market
  const ownSeries = query.source === 'kalshi' ? seriesOfTicker(market!) : market!.split(':', 1)[0]!
  const likely = catalogue?.series ?? ownSeries
  const found = search.seriesWith(isWanted, likely)
  if (found !== undefined) return { series: found, isWanted }
  search.assertLakeIsThere()
  throw new ApiError('unknown_market', `No ${query.source} market ${market} is known.`)
}

/** The markets of an event: those that the catalogue lists, else those whose tickers begin with the event's. */
function eventFilter(event: string, catalogue: LobCatalogueEntry | null): (id: string) => boolean {
  const listed = new Set(catalogue?.markets)
  const prefix = `${event}-`
  return (id) => listed.has(id) || id.startsWith(prefix)
}

const LISTED_SERIES_MAX = 10

class MarketSearch {
  readonly #lake: string
  readonly #query: LobQuery
  #filesLeft = MARKET_SEARCH_FILES_MAX
  /** The first file or directory that could not be read. */
  #broken: unknown

  constructor(lake: string, query: LobQuery) {
    this.#lake = lake
    this.#query = query
  }

  /** The dates a series has files of, the ones asked for first, then the newest. */
  datesOf(series: string): string[] {
    if (!isSeriesName(series)) return []
    const wanted = new Set(this.#query.dates)
    return this.#namesIn(lobSeriesDirectory(this.#lake, this.#query.source, series))
      .map(dateOfLakeFileName)
      .filter((date) => date !== undefined)
      .toSorted((left, right) => {
        const difference = Number(wanted.has(right)) - Number(wanted.has(left))
        return difference === 0 ? (left < right ? 1 : -1) : difference
      })
  }

  /**
   * The series that has a market `isWanted` accepts: the likely one if it does, else any. Throws when none has, but a
   * file or directory could not be read: then nothing can be said.
   */
  seriesWith(isWanted: (id: string) => boolean, likely: string): string | undefined {
    const others = this.#allSeries().filter((series) => series !== likely)
    const found = [likely, ...others].find((series) => this.#hasMarket(series, isWanted))
    if (found === undefined && this.#broken !== undefined) throw this.#broken
    return found
  }

  /** Throws when the lake itself is gone: then nothing is known to be unknown. */
  assertLakeIsThere(): void {
    try {
      statSync(this.#lake)
    } catch (error) {
      throw lakeUnavailable(this.#lake, this.#lake, error)
    }
  }

  /** The known series, for an error message. */
  describe(): string {
    const all = this.#allSeries()
    if (all.length === 0) return 'none yet'
    const more = all.length > LISTED_SERIES_MAX ? ` and ${all.length - LISTED_SERIES_MAX} more` : ''
    return all.slice(0, LISTED_SERIES_MAX).join(', ') + more
  }

  #allSeries(): string[] {
    return this.#namesIn(lobSourceDirectory(this.#lake, this.#query.source))
      .map((name) => /^series=(.+)$/.exec(name)?.[1] ?? '')
      .filter(isSeriesName)
      .toSorted()
  }

  #hasMarket(series: string, isWanted: (id: string) => boolean): boolean {
    // What is broken of another date or series must not cost this request its answer.
    return this.#unlessBroken([], () => this.datesOf(series)).some((date) => {
      if (this.#filesLeft-- <= 0) return false
      return this.#unlessBroken([], () => this.#marketsOf(series, date)).some(isWanted)
    })
  }

  #unlessBroken<Value>(otherwise: Value, read: () => Value): Value {
    try {
      return read()
    } catch (error) {
      this.#broken ??= error
      return otherwise
    }
  }

  #marketsOf(series: string, date: string): string[] {
    const file = LakeFile.open(this.#lake, this.#query.source, series, date)
    if (file === undefined) return []
    try {
      return [...file.index.markets.keys()]
    } finally {
      file.close()
    }
  }

  #namesIn(directory: string): string[] {
    try {
      return readdirSync(directory)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return []
      throw lakeUnavailable(this.#lake, directory, error)
    }
  }
}
