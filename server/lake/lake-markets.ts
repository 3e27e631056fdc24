// Lists the markets in the order-book files of a lake.

import { existsSync } from 'node:fs'
import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { utcDatesBetween } from '../../shared/utc-date.ts'
import { lakeFileFacts } from './lake-file-facts.ts'

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
