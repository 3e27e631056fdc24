// Lists the markets in the order-book files of a lake.

import { existsSync } from 'node:fs'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { LOB_SOURCES, type LobSource } from '../../shared/lob-sources.ts'
import { utcDatesBetween } from '../../shared/utc-date.ts'
import { lakeFileFacts } from './lake-file-facts.ts'
import { seriesDates } from './series-dates.ts'

/** The ids of a series' markets in the files of the dates from first to last, both inclusive. Samples are left out. */
export async function marketsInLake(
  lake: string,
  source: LobSource,
  series: string,
  [first, last]: readonly [string, string],
): Promise<readonly string[]> {
  const ids = new Set<string>()
  for (const date of utcDatesBetween(first, last)) {
    const path = lobFilePath(lake, source, series, date)
    const facts = existsSync(path) ? await lakeFileFacts(path) : undefined
    if (facts?.isSample !== true) for (const id of facts?.coverage?.markets.keys() ?? []) ids.add(id)
  }
  return [...ids].toSorted()
}

/** The markets that have order books of a date in other series alone. Each date is read once. */
export class MarketsOfOthers {
  readonly #lake: string
  readonly #source: LobSource
  readonly #series: string
  readonly #dates = new Map<string, ReadonlySet<string>>()

  constructor(lake: string, source: LobSource, series: string) {
    this.#lake = lake
    this.#source = source
    this.#series = series
  }

  async has({ date, marketId }: { readonly date: string; readonly marketId: string }): Promise<boolean> {
    if (LOB_SOURCES[this.#source].isSeriesInId) return false
    let ids = this.#dates.get(date)
    if (ids === undefined) this.#dates.set(date, (ids = await this.#idsOf(date)))
    return ids.has(marketId)
  }

  async #idsOf(date: string): Promise<ReadonlySet<string>> {
    const idsOf = async (series: string): Promise<readonly string[]> =>
      await marketsInLake(this.#lake, this.#source, series, [date, date])
    const ids = new Set<string>()
    for await (const { source, series, dates } of seriesDates(this.#lake))
      if (source === this.#source && dates.includes(date)) for (const id of await idsOf(series)) ids.add(id)
    for (const id of await idsOf(this.#series)) ids.delete(id)
    return ids
  }
}
