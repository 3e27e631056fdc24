// Keeps the catalogue in memory in step with the store. It polls the data versions every second, reads all series again when
// their version has changed, and the changed markets when theirs has. While the store is unreachable it keeps polling.

import type { Logger } from 'pino'
import { RepeatedTurns } from '../tasks/repeated-turns.ts'
import type { Catalogue } from './catalogue.ts'
import type { MarketRow, SeriesRow } from './catalogue-entry.ts'

/** How often the store is polled for changes: an answer from memory is at most this much behind. */
const DATA_VERSION_POLL_MS = 1_000
/** Markets held in memory, some 200 bytes each. With more, reading fails rather than serving a part. */
const CATALOGUE_MARKETS_MAX = 2_000_000
/** Each read of changes starts this much before the newest one seen, because a slow transaction may commit an older one. */
export const CATALOGUE_OVERLAP_MS = 10 * 60 * 1000

/** A text for each dataset that differs after every change. */
export type DataVersions = ReadonlyMap<string, string>

export interface ChangedMarketRow extends MarketRow {
  /** When the row was last written, by the clock of the store, ms since the epoch. */
  readonly written_at: number
}

/** The store as the feed uses it; every call rejects while it is unreachable. */
export interface CatalogueSource {
  versions(signal: AbortSignal): Promise<DataVersions>
  series(signal: AbortSignal): AsyncIterable<readonly SeriesRow[]>
  /** Markets written at or after an instant; all markets if it is null. */
  markets(writtenSinceMs: number | null, signal: AbortSignal): AsyncIterable<readonly ChangedMarketRow[]>
}

export interface CatalogueFeedOptions {
  readonly catalogue: Catalogue
  readonly source: CatalogueSource
  readonly logger: Logger
  /** Called when the lake's manifest has changed, and with the first poll. */
  readonly onManifestChange?: () => void
  readonly pollMs?: number
}

export class CatalogueFeed extends RepeatedTurns {
  readonly #options: CatalogueFeedOptions
  #versions: DataVersions = new Map()
  #seriesVersion: string | undefined
  #marketsVersion: string | undefined
  #manifestVersion: string | undefined
  #newestMarketMs: number | null = null
  #isAway = false

  constructor(options: CatalogueFeedOptions) {
    super(options.pollMs ?? DATA_VERSION_POLL_MS)
    this.#options = options
  }

  /** The last versions read; empty before the first answer of the store and while it is unreachable. */
  get versions(): DataVersions {
    return this.#versions
  }

  protected override async take(signal: AbortSignal): Promise<void> {
    const { logger } = this.#options
    try {
      await this.#refresh(signal)
      if (this.#isAway) logger.info('the catalogue is fresh again')
      this.#isAway = false
    } catch (error) {
      this.#versions = new Map()
      if (!this.#isAway && !signal.aborted)
        logger.warn({ err: error }, 'cannot read the catalogue; the server keeps the last one')
      this.#isAway = true
    }
  }

  async #refresh(signal: AbortSignal): Promise<void> {
    const { catalogue, source } = this.#options
    const versions = await source.versions(signal)
    this.#versions = versions
    const manifest = versions.get('lake_manifest') ?? ''
    if (manifest !== this.#manifestVersion) this.#options.onManifestChange?.()
    this.#manifestVersion = manifest
    const series = versions.get('series') ?? ''
    const markets = versions.get('markets') ?? ''
    if (series === this.#seriesVersion && markets === this.#marketsVersion) return
    catalogue.markChanging()
    if (series !== this.#seriesVersion) await this.#readSeries(signal)
    if (markets !== this.#marketsVersion) await this.#readMarkets(signal)
    const after = await source.versions(signal)
    const isOneState = after.get('series') === series && after.get('markets') === markets
    catalogue.markLoaded(isOneState ? `${series} ${markets}` : null)
    this.#seriesVersion = series
    this.#marketsVersion = markets
  }

  async #readSeries(signal: AbortSignal): Promise<void> {
    const { catalogue, source } = this.#options
    const rows: SeriesRow[] = []
    for await (const batch of source.series(signal)) rows.push(...batch)
    catalogue.replaceSeries(rows)
  }

  async #readMarkets(signal: AbortSignal): Promise<void> {
    const { catalogue, source } = this.#options
    let newestMs = this.#newestMarketMs
    const sinceMs = newestMs === null ? null : newestMs - CATALOGUE_OVERLAP_MS
    for await (const batch of source.markets(sinceMs, signal)) {
      catalogue.putMarkets(batch)
      for (const { written_at } of batch) newestMs = Math.max(newestMs ?? 0, written_at)
      if (catalogue.marketCount > CATALOGUE_MARKETS_MAX)
        throw new Error(
          `the store has more than ${CATALOGUE_MARKETS_MAX} markets, the most that fit in memory`,
        )
    }
    this.#newestMarketMs = newestMs
  }
}
