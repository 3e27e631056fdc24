// Lists the series and dates of a lake that have order books or trades, by directory names alone: no file is read. A date without
// a file is left only by a process that died between creating the date's directory and renaming its file.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { noneThere } from '../../shared/errno.ts'
import { dateOfDirectoryName, type DerivedDataset, derivedSourceDirectory } from '../../shared/lake-layout.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { lobSources, type LobSource } from '../../shared/lob-sources.ts'

export interface SeriesDates {
  readonly source: LobSource
  readonly series: string
  /** Ascending; at least one. */
  readonly dates: readonly string[]
}

/** The series that have at least one date, by source and name. */
export async function* seriesDates(
  lake: string,
  dataset: DerivedDataset = 'lob',
): AsyncGenerator<SeriesDates> {
  for (const source of lobSources()) {
    const root = derivedSourceDirectory(lake, dataset, source)
    for (const name of await directoryNames(root)) {
      const series = /^series=(.+)$/.exec(name)?.[1]
      if (series === undefined || !isSeriesName(series)) continue
      const names = await directoryNames(join(root, name))
      const dates = names.map(dateOfDirectoryName).filter((date) => date !== undefined)
      if (dates.length > 0) yield { source, series, dates }
    }
  }
}

/** The names in a directory, sorted; empty if there is no directory. */
export async function directoryNames(directory: string): Promise<string[]> {
  return ((await readdir(directory).catch(noneThere)) ?? []).toSorted()
}
