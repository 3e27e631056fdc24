// The books of a lake, read in the slow and obvious way: rows of each file in file order, each date's file alone.
//
// At an instant T of a UTC date a market's book is what the rows with ts ≤ T of that date's file make of it. It is unknown
// before its first `clear`, after a `gap`, outside the time that the file covers by its footer, and where there is no
// file. At midnight it is known only if the file begins with its keyframe: nothing is carried over from another file.

import { createHash } from 'node:crypto'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { parquetMetadata, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { applyNaively, bookText } from '../../support/lob-rows.ts'
import type { LobRow, NaiveBook } from '../../support/lob-rows.ts'
import { entriesBelow } from '../../support/temporary-lake.ts'
import { UNKNOWN } from './book-steps.ts'
import type { BookStep } from './book-steps.ts'

const NS_PER_DAY = 86_400_000_000_000n

export interface LakeBooks {
  /** By market id. */
  readonly steps: ReadonlyMap<string, readonly BookStep[]>
  /** `YYYY-MM-DD`, each once. */
  readonly dates: readonly string[]
}

/** sha256 by path, of every parquet file below `lob/`. */
export async function lakeHashes(lake: string): Promise<Map<string, string>> {
  const names = (await entriesBelow(join(lake, 'lob'))).filter((name) => name.endsWith('.parquet'))
  const hashes = new Map<string, string>()
  for (const name of names) {
    hashes.set(
      name,
      createHash('sha256')
        .update(await readFile(join(lake, 'lob', name)))
        .digest('hex'),
    )
  }
  return hashes
}

/** The order-book files in which two lakes differ, each with how `found` differs from `expected`, by path. */
export async function differingFiles(expected: string, found: string): Promise<string[]> {
  const [wanted, there] = [await lakeHashes(expected), await lakeHashes(found)]
  const names = [...new Set([...wanted.keys(), ...there.keys()])].toSorted((a, b) => (a < b ? -1 : 1))
  return names
    .filter((name) => wanted.get(name) !== there.get(name))
    .map((name) => `${name}: ${!there.has(name) ? 'absent' : wanted.has(name) ? 'other bytes' : 'too many'}`)
}

/** Temporary files below the lake: what a run has left behind. */
export async function strayEntries(lake: string): Promise<string[]> {
  const entries = await readdir(lake, { recursive: true, withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isFile() && entry.name.endsWith('.tmp')).map((entry) => entry.name)
}

/** The books of all files of a lake, and the dates there are files of. */
export async function readLake(lake: string): Promise<LakeBooks> {
  const names = (await entriesBelow(join(lake, 'lob'))).filter((name) => name.endsWith('.parquet'))
  const steps = new Map<string, BookStep[]>()
  const dates = new Set<string>()
  const files = names.map((name) => ({
    name,
    date: /date=(\d{4}-\d{2}-\d{2})\/lob\.parquet$/.exec(name)![1]!,
  }))
  for (const { name, date } of files.toSorted((a, b) => (a.date < b.date ? -1 : 1))) {
    dates.add(date)
    for (const [id, found] of await fileSteps(join(lake, 'lob', name), date)) {
      const list = steps.get(id) ?? []
      steps.set(id, list)
      list.push(...found)
    }
  }
  return { steps, dates: [...dates] }
}

async function fileSteps(path: string, date: string): Promise<Map<string, BookStep[]>> {
  const bytes = new Uint8Array(await readFile(path))
  const metadata = parquetMetadata(bytes.buffer)
  const footer = new Map(metadata.key_value_metadata?.map(({ key, value }) => [key, value]))
  const coversFrom = BigInt(footer.get('covers_from')!)
  const coversTo = BigInt(footer.get('covers_to')!)
  const dayStart = BigInt(Date.parse(`${date}T00:00:00Z`)) * 1_000_000n
  const dayEnd = dayStart + NS_PER_DAY
  const end = coversTo + 1n < dayEnd ? coversTo + 1n : dayEnd
  const rows = (await parquetReadObjects({
    file: bytes.buffer,
    metadata,
    compressors,
  })) as unknown as LobRow[]
  const books = new Map<string, NaiveBook>()
  const steps = new Map<string, BookStep[]>()
  for (const { market_id, ts, event, side, price, qty } of rows) {
    if (ts < dayStart || ts >= dayEnd) throw new Error(`${path}: a row at ${ts} is not of this date`)
    const book = applyNaively(books.get(market_id), event, side, price, qty)
    books.set(market_id, book)
    const list = steps.get(market_id) ?? []
    steps.set(market_id, list)
    if (list.length > 0 && ts < list.at(-1)!.ts)
      throw new Error(`${path}: ${market_id} goes back in time at ${ts}`)
    const isCovered = ts >= coversFrom && ts < end
    // Of rows with one time only the last counts.
    if (list.at(-1)?.ts === ts) list.pop()
    list.push({ ts, text: isCovered ? bookText(book) : UNKNOWN })
  }
  for (const list of steps.values()) list.push({ ts: end, text: UNKNOWN })
  return steps
}
