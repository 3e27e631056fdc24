// What the lake holds of a source: which series a recording touches, which dates they have, and how dates begin.

import { existsSync, readdirSync } from 'node:fs'
import {
  dateOfLakeFileName,
  lobFilePath,
  lobSeriesDirectory,
  lobSourceDirectory,
} from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays } from '../../shared/utc-date.ts'
import type { BookLevel } from '../lake/exact-book.ts'
import type { StatedStrand } from '../lake/lob-evidence.ts'
import { LobFileEvidence } from '../lake/lob-file-evidence.ts'
import type { LakeDateOutline } from '../lake/lob-file-evidence.ts'
import type { MarketFoldState } from '../lake/market-fold.ts'
import { ConnectionEnds } from './connection-ends.ts'
import type { LakeFile } from './lake-records.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import { datesOf, dayOf } from './series-spans.ts'

/** A recording that was read, and the lake it goes to. */
interface MergedRecording {
  readonly lake: string
  readonly source: LobSource
  readonly spans: FeedSpans
}

/** The series of the lake that the recording's spans may belong to, besides those that it has events of. */
export async function seriesTouched({ lake, source, spans }: MergedRecording): Promise<string[]> {
  const [first, last] = datesOf(spans)
  if (first === undefined || last === undefined) return []
  const touched: string[] = []
  for (const name of namesIn(lobSourceDirectory(lake, source))) {
    const series = /^series=(.+)$/.exec(name)?.[1]
    if (series === undefined) continue
    if (await goesOn({ lake, source, spans }, series, addDays(first, -1), addDays(last, 1)))
      touched.push(series)
  }
  return touched
}

async function goesOn(
  { lake, source, spans }: MergedRecording,
  series: string,
  from: string,
  to: string,
): Promise<boolean> {
  const sids = new Set([...spans.list.values()].map(({ sid }) => sid))
  const ends = new ConnectionEnds(spans.endsBefore)
  for (const date of lakeDates(lake, source, series)) {
    if (date < from || date > to) continue
    const file = await LobFileEvidence.open(lobFilePath(lake, source, series, date))
    if (file === undefined) continue
    try {
      if (file.strands.some((strand) => sids.has(strand.sid) || endsOne(ends, strand))) return true
    } finally {
      await file.close()
    }
  }
  return false
}

// Numbers go on whatever a recorder says of them: only what is heard of last ends there.
function endsOne(ends: ConnectionEnds, { sid, firstRecvTs, lastRecvTs }: StatedStrand): boolean {
  return ends.mayEnd(lastRecvTs) || (sid === null && ends.isBetween(firstRecvTs, lastRecvTs))
}

/** The lake holds files for these dates that cannot be merged with. */
export class OpaqueFileError extends Error {
  readonly paths: readonly string[]

  constructor(paths: readonly string[]) {
    super(
      `${paths.join(', ')} ${paths.length === 1 ? 'was' : 'were'} written without what is needed to merge more into ` +
        'it; import everything that is recorded of the date with --replace, which writes it anew',
    )
    this.name = 'OpaqueFileError'
    this.paths = paths
  }
}

/** The dates that a series has files of, ascending. */
export function lakeDates(lake: string, source: LobSource, series: string): string[] {
  return namesIn(lobSeriesDirectory(lake, source, series))
    .map(dateOfLakeFileName)
    .filter((date) => date !== undefined)
    .toSorted()
}

export function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : []
}

/** A market's known books at midnight, the serving strand's first. */
interface BooksAtStart {
  readonly id: string
  readonly books: readonly { readonly strand: number; readonly levels: readonly BookLevel[] }[]
}

/** The books that a date's file begins with; `strandOf` gives the number of one of its strands. */
export async function booksAtStart(
  file: LakeFile,
  { carried }: LakeDateOutline,
  strandOf: (strand: number) => number,
): Promise<BooksAtStart[]> {
  if (carried.length === 0) return []
  const midnight = await midnightBooks(file)
  return carried.map(({ id, books }) => ({
    id,
    books: books.map(({ strand, levels }) => {
      return { strand: strandOf(strand), levels: levels ?? midnight.get(id) ?? [] }
    }),
  }))
}

/** The markets as a date finds them, by id; where several files tell them, the books of the earliest strands first. */
export function startFolds(files: readonly (readonly BooksAtStart[])[]): Map<string, MarketFoldState> {
  const folds = new Map<string, MarketFoldState>()
  for (const { id, books } of files.flat()) {
    const others = folds.get(id)?.known ?? []
    const added = books.filter(({ strand }) => others.every((other) => other.strand !== strand))
    const known = others.length === 0 ? added : [...others, ...added].toSorted((a, b) => a.strand - b.strand)
    folds.set(id, { serving: known[0]?.strand, isGapped: false, lastTs: 0n, rows: 0, known })
  }
  return folds
}

/** The books that a date's file begins with, as its keyframes state them, by market. */
async function midnightBooks({ path, date }: LakeFile): Promise<Map<string, BookLevel[]>> {
  const books = new Map<string, BookLevel[]>()
  const file = await LobFileEvidence.open(path)
  if (file === undefined) throw new Error(`${path} was changed while it was merged with`)
  try {
    await file.read(
      () => undefined,
      (market, side, price, qty) => {
        const levels = books.get(market)
        if (levels === undefined) books.set(market, [{ side, price, qty }])
        else levels.push({ side, price, qty })
      },
      dayOf(date).start,
      { isFirstHourOnly: true },
    )
  } finally {
    await file.close()
  }
  return books
}
