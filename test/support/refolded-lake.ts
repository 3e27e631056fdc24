// A lake whose order-book files are folded again from another lake's raw segments.

import { existsSync } from 'node:fs'
import { cp, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import type { FoldOrder } from '../../server/fold/fold-order.ts'
import { rawDates } from '../../server/raw/date-manifest.ts'
import { rawSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'

/** Copies only the segments of `lake` into the lake `other`, folds all their dates, and returns `other`. */
export async function refold(
  lake: string,
  other: string,
  source: LobSource,
  bounds: FoldOrder['bounds'] = {},
): Promise<string> {
  await mkdir(join(other, 'raw'), { recursive: true })
  await cp(rawSourceDirectory(lake, source), rawSourceDirectory(other, source), {
    recursive: true,
    filter: (path) => !path.endsWith('.json') && !path.endsWith('fold.json.gz'),
  })
  const dates = await rawDates(other, source)
  await foldRawDates({ lake: other, source, dates, bounds }, {}, new AbortController().signal)
  return other
}

/** Paths of the parquet files below a directory, sorted; none if it does not exist. */
export async function parquetFilesBelow(directory: string): Promise<string[]> {
  if (!existsSync(directory)) return []
  const names = await readdir(directory, { recursive: true })
  return names.filter((name) => name.endsWith('.parquet')).toSorted()
}
