// Entity tags of record answers, found before a query runs: the data versions of the store's datasets that the answer is
// made from, the lake files of its series or station, and the query itself. Where one of them cannot be told at little
// cost (several series at once, bounds that move with the clock, a store that is away) an answer has no tag.

import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isSeriesName, recordFileName, type RecordDataset, seriesOfTicker } from '../../shared/lake-layout.ts'
import { VALIDATED_FILES_MAX } from '../../shared/limits.ts'
import type { CandleQuery, ClimateQuery, ObservationQuery } from '../../shared/record-task.ts'
import type { DatasetName } from '../storage/store-transaction.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import type { CachePolicy } from '../http/cache-policy.ts'
import type { Validator } from '../http/endpoint.ts'
import { strongEtag } from '../http/etag.ts'

export interface RecordValidatorOptions {
  readonly lake: string
  /** What the store said last; empty while it is away. */
  readonly versions: () => DataVersions
  readonly cachePolicy: CachePolicy
  /** The version of the program: another one may write other bytes. */
  readonly version: string
}

/** The one directory of lake files that a query reads from; undefined when there may be several. */
function candleScope({ market, event, series }: CandleQuery): string | undefined {
  const ticker = market ?? event ?? series
  // Only the exchange's own tickers begin with their series.
  if (ticker === null || ticker.includes(':')) return undefined
  return seriesOfTicker(ticker)
}

export class RecordValidators {
  readonly #options: RecordValidatorOptions

  constructor(options: RecordValidatorOptions) {
    this.#options = options
  }

  /** @param isFixed whether the request itself names both ends of its range */
  async ofCandles(query: CandleQuery, isFixed: boolean): Promise<Validator | undefined> {
    const scope = candleScope(query)
    if (!isFixed || scope === undefined) return undefined
    const files = await this.#lakeIdentity('candles', scope)
    return this.#validator(query, ['candles', 'lake_manifest', 'markets', 'series'], files)
  }

  /** @param isFixed whether the request itself names both ends of its range */
  async ofObservations(query: ObservationQuery, isFixed: boolean): Promise<Validator | undefined> {
    if (!isFixed || query.station === null) return undefined
    const files = await this.#lakeIdentity('observations', query.station)
    return this.#validator(query, ['observations', 'lake_manifest'], files)
  }

  ofClimate(query: ClimateQuery): Validator | undefined {
    return this.#validator(query, ['climate'], '')
  }

  #validator(
    query: object,
    datasets: readonly DatasetName[],
    files: string | undefined,
  ): Validator | undefined {
    const { versions, version, cachePolicy } = this.#options
    const known = datasets.map((dataset) => versions().get(dataset))
    if (files === undefined || known.includes(undefined)) return undefined
    const etag = strongEtag(version, JSON.stringify(query), known.join(' '), files)
    return { etag, cacheControl: cachePolicy.revalidate }
  }

  /** Names every file of one scope by its size and times; undefined when there are too many to look at. */
  async #lakeIdentity(dataset: RecordDataset, scope: string): Promise<string | undefined> {
    if (!isSeriesName(scope)) return undefined
    const directory = dirname(join(this.#options.lake, recordFileName(dataset, scope, '')))
    let names: string[]
    try {
      names = (await readdir(directory)).toSorted()
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT' ? '' : undefined
    }
    if (names.length > VALIDATED_FILES_MAX) return undefined
    try {
      const stats = await Promise.all(names.map((name) => stat(join(directory, name), { bigint: true })))
      const identities = stats.map(
        ({ ino, size, mtimeNs, ctimeNs }, index) => `${names[index]} ${ino} ${size} ${mtimeNs} ${ctimeNs}`,
      )
      return identities.join('\n')
    } catch {
      // A file went away between the two looks: the next request sees the new state.
      return undefined
    }
  }
}
