// Finds the series that have given markets, by the directories of the lake and the markets that footers list. If two series have
// a market on the same date, the request is refused, so that neither part is served as if it were the whole.

import { readdirSync, statSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { ApiError } from '../../shared/errors.ts'
import {
  dateOfDirectoryName,
  lobKey,
  lobSeriesDirectory,
  lobSourceDirectory,
} from '../../shared/lake-layout.ts'
import { FileFacts } from '../../shared/file-facts.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { lobSourceNames, type LobSourceNames } from '../../shared/lob-sources.ts'
import type { MarketsAsked } from '../../shared/lob-task.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { addDays } from '../../shared/utc-date.ts'
import { lakeUnavailable } from '../lake/lake-file-error.ts'
import { watched, watchedStat } from '../lake/watched-files.ts'
import type { PinnedFiles } from '../lake/pinned-files.ts'
import { LakeFile } from './lake-file.ts'

/** The maximum of footers that are searched for a market that the requested dates do not have, before it counts as unknown. */
const MARKET_SEARCH_FILES_MAX = 2_000

/**
 * The maximum of footers of other series that are searched for the market of a request, to verify that only one series has it: a
 * month of the forty series of the temperature markets.
 */
const OTHER_FILES_MAX = 1_500
export type MarketFilter = (marketId: string) => boolean

export interface FoundSeries {
  /** The series, or the first of several. */
  readonly series: string
  /** The series whose file of a date is read; also for dates before the requested ones. */
  readonly seriesOf: (date: string) => string
}

const LISTED_SERIES_MAX = 10

/** The estimated size of a cache of market ids: 150 tickers in each of the files that a request may search. */
const LISTS_BYTES_MAX = 16 * 1024 * 1024
/** The size of a list without its ids, and of an id without its characters. */
const LIST_BYTES = 512
const ID_BYTES = 32

// The requests of a thread share these caches of the market ids in files. With them, a request for a market that no file has checks
// the files' identities and reads none. For likely series only ids of the verified index are used, also to conclude that a market is
// absent.
const indexedMarkets = new FileFacts<readonly string[]>(LISTS_BYTES_MAX)
const listedMarkets = new FileFacts<readonly string[]>(LISTS_BYTES_MAX)

export class SeriesSearch {
  readonly #lake: string
  readonly #query: MarketsAsked
  readonly #version: PinnedFiles | undefined
  readonly #names: LobSourceNames
  readonly #isWanted: MarketFilter
  /** The series that most probably have the markets, the likeliest first. */
  readonly #likely: readonly string[]
  readonly #dates = new Map<string, string[]>()
  #filesLeft: number
  #otherFilesLeft = OTHER_FILES_MAX
  #candidateList: readonly string[] | undefined
  /** The error of the first file or directory that could not be read and may have the markets. */
  #broken: unknown
  /** The same, for likely series only. */
  #likelyBroken: unknown

  constructor(
    lake: string,
    query: MarketsAsked,
    isWanted: MarketFilter,
    likely: readonly string[],
    version: PinnedFiles | undefined,
    filesMax = MARKET_SEARCH_FILES_MAX,
  ) {
    this.#lake = lake
    this.#query = query
    this.#version = version
    this.#names = lobSourceNames(query.source)
    this.#isWanted = isWanted
    this.#likely = [...new Set(likely)].filter(isSeriesName)
    this.#filesLeft = filesMax
  }

  /** The dates of a series' files, newest first, but the requested dates before all others. */
  datesOf(series: string): string[] {
    if (!isSeriesName(series)) return []
    const known = this.#dates.get(series)
    if (known !== undefined) return known
    const found = this.#namesIn(lobSeriesDirectory(this.#lake, this.#query.source, series))
      .map(dateOfDirectoryName)
      .filter((date) => date !== undefined)
      .toSorted()
      .toReversed()
    const wanted = new Set(this.#query.dates)
    const dates = [...found.filter((date) => wanted.has(date)), ...found.filter((date) => !wanted.has(date))]
    this.#dates.set(series, dates)
    return dates
  }

  /**
   * The series that have the markets on the requested dates; undefined if none has. Throws `ambiguous_market` if two have them on
   * one date, and the error of a likely series that could not be read.
   */
  seriesByDate(): FoundSeries | undefined {
    const { dates } = this.#query
    const found = new Map<string, string>()
    for (const date of dates) {
      const series = this.#onlySeriesOn(date)
      if (series !== undefined) found.set(date, series)
    }
    const first = found.values().next().value
    const broken = this.#likelyBroken
    this.#likelyBroken = this.#broken = undefined
    if (first === undefined) return undefined
    if (broken !== undefined) throw broken
    // A date without the markets belongs to the series that had them before, since their books continue there.
    let current = first
    for (const date of dates) {
      current = found.get(date) ?? current
      found.set(date, current)
    }
    return { series: first, seriesOf: (date) => found.get(date) ?? first }
  }

  /**
   * The series that has the markets on any date, likely series first; undefined if none has. Throws if a file or directory that
   * may have them could not be read.
   */
  seriesOfAnyDate(): FoundSeries | undefined {
    const series = this.#candidates().find((one) => this.#hasMarket(one))
    if (series === undefined) {
      if (this.#broken !== undefined) throw this.#broken
      return undefined
    }
    // The first date may continue books of the date before.
    const carried = this.#onlySeriesOn(addDays(this.#query.dates[0]!, -1)) ?? series
    return { series: carried, seriesOf: () => carried }
  }

  /** Throws if the lake itself is missing: then no name may be called unknown. */
  assertLakeIsThere(): void {
    try {
      watched(basename(this.#lake), () => statSync(this.#lake))
    } catch (error) {
      if (error instanceof ApiError) throw error
      throw lakeUnavailable(this.#lake, this.#lake, error)
    }
  }

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

  #candidates(): readonly string[] {
    this.#candidateList ??= [...new Set([...this.#likely, ...this.#allSeries()])]
    return this.#candidateList
  }

  #onlySeriesOn(date: string): string | undefined {
    const found = this.#candidates().filter((series) => {
      if (this.#likely.includes(series)) return this.#hasMarketOn(series, date)
      if (this.#names.isOfOneMarket(series) || this.#otherFilesLeft <= 0) return false
      return this.#hasMarketOn(series, date)
    })
    if (found.length < 2) return found[0]
    const { source, market, series } = this.#query
    throw new ApiError(
      'ambiguous_market',
      `The lake has ${source} ${market ?? `event ${series}`} of ${date} in two series, ${found[0]} and ${found[1]}: ` +
        `ask for one of them with series=, or remove the market from one.`,
    )
  }

  #hasMarket(series: string): boolean {
    // An unreadable file of another date or series must not fail this request.
    return this.#unlessBroken(series, [], () => this.datesOf(series)).some((date) => {
      if (this.#filesLeft-- <= 0) return false
      return this.#hasMarketOn(series, date)
    })
  }

  #hasMarketOn(series: string, date: string): boolean {
    const isAsked = this.#query.dates.includes(date)
    return this.#unlessBroken(series, false, () => this.#fileHasMarket(series, date), isAsked)
  }

  #unlessBroken<Value>(series: string, otherwise: Value, read: () => Value, isAsked = true): Value {
    try {
      return read()
    } catch (error) {
      if (this.#mayHoldMarket(series, isAsked)) this.#broken ??= error
      if (this.#likely.includes(series)) this.#likelyBroken ??= error
      return otherwise
    }
  }

  // If ids do not name their series, any series except one of a single other market may have them. Files of other dates do not
  // matter, since they add nothing to the answer.
  #mayHoldMarket(series: string, isAsked: boolean): boolean {
    if (this.#likely.includes(series)) return true
    const { isSeriesInId, isOfOneMarket } = this.#names
    return !isSeriesInId && isAsked && !isOfOneMarket(series)
  }

  #fileHasMarket(series: string, date: string): boolean {
    const { source } = this.#query
    const isWanted = this.#isWanted
    const isLikely = this.#likely.includes(series)
    const name = lobKey(source, series, date)
    const path = join(this.#lake, name)
    if (!isLikely) this.#otherFilesLeft--
    const stat = this.#version === undefined ? watchedStat(name, path) : undefined
    const identity = stat && identityOf(stat)
    const known =
      identity === undefined
        ? undefined
        : (indexedMarkets.of(path, identity) ?? (isLikely ? undefined : listedMarkets.of(path, identity)))
    if (known !== undefined && !known.some(isWanted)) return false
    const file = LakeFile.open(this.#lake, source, series, date, this.#version)
    if (file === undefined) return false
    try {
      if (known === undefined && !isLikely) {
        const listed = file.listedMarkets()
        if (listed !== undefined && this.#version === undefined)
          listedMarkets.add(path, file.identity, listed, sizeOf(listed))
        if (listed !== undefined && !listed.some(isWanted)) return false
      }
      const ids = [...file.index.markets.keys()]
      if (this.#version === undefined) indexedMarkets.add(path, file.identity, ids, sizeOf(ids))
      return ids.some(isWanted)
    } finally {
      file.close()
    }
  }

  #namesIn(directory: string): string[] {
    const name = relative(this.#lake, directory)
    if (this.#version !== undefined) return this.#version.namesIn(name)
    try {
      return watched(name, () => readdirSync(directory))
    } catch (error) {
      if (error instanceof ApiError) throw error
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT' || code === 'ENOTDIR') return []
      throw lakeUnavailable(this.#lake, directory, error)
    }
  }
}

function sizeOf(ids: readonly string[]): number {
  return ids.reduce((sum, id) => sum + id.length + ID_BYTES, LIST_BYTES)
}
