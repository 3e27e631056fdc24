// Derives the trades files of dates from raw segments. The files are staged beside their final names; the caller publishes them.

import { existsSync, renameSync, rmSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { derivedFileOfKey, tradesKey, tradesSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { haveEqualBytes, syncDirectory } from '../lake/durable-file.ts'
import { removeWhileEmpty } from '../lake/empty-directories.ts'
import { stageTradesFile } from './trades-file.ts'
import { DateTrades } from './trade-reading.ts'
import type { TradeReadingOptions } from './trade-reading.ts'

export interface TradesFoldOptions extends TradeReadingOptions {
  /** Whether the lake has segments of a date. If they were removed, or only another lake has them, its files are not changed. */
  readonly hasSegments: (date: string) => boolean
}

/** The outcome for a trades file. */
export interface WrittenTrades {
  readonly path: string
  readonly date: string
  /** `removed`: the date no longer has trades of the series. `unchanged`: the lake already had the same bytes. */
  readonly status: 'written' | 'replaced' | 'removed' | 'unchanged'
  readonly rows: number
}

/** A file to publish. `temporary` is defined if it is to be written or replaced. */
export interface StagedTrades extends WrittenTrades {
  readonly temporary: string | undefined
}

/** Counters of a fold of trades. */
export interface TradesTally {
  /** Messages of trades that cannot be read. */
  badTrades: number
  /** Trades whose price was more precise than 1/10000 dollar. */
  roundedPrices: number
}

/**
 * Derives the trades of `dates`, and of the neighbouring dates that have trades in the same segments. Passes each file to `onFile`
 * as soon as it is staged, so that the caller can remove it after a failure, and each date that was read to `onRead`.
 * @throws {DamagedSegmentError}
 */
export async function foldTrades(
  dates: readonly string[],
  options: TradesFoldOptions,
  tally: TradesTally,
  onFile: (file: StagedTrades) => void,
  onRead: (trades: DateTrades) => void,
): Promise<void> {
  const waiting = new Set(dates)
  for (const date of waiting) {
    const isBeside = !dates.includes(date)
    // The files of a neighbour without segments have more than the late trades.
    if (isBeside && !options.hasSegments(date)) continue
    const trades = new DateTrades(date, options)
    await trades.read()
    onRead(trades)
    if (!isBeside) for (const neighbour of trades.neighbours) waiting.add(neighbour)
    await stageDate(trades, options, tally, onFile)
  }
}

/** Stages the files of one date up to `toMs`: one per series, and the removal of files that no longer have trades. */
export async function stageDate(
  trades: DateTrades,
  { lake, source, toMs }: Pick<TradesFoldOptions, 'lake' | 'source'> & { readonly toMs?: number },
  tally: TradesTally,
  onFile: (file: StagedTrades) => void,
): Promise<void> {
  const { date } = trades
  const bySeries = trades.bySeries(toMs)
  tally.badTrades += trades.badCount
  for (const [series, rows] of bySeries) {
    const path = join(lake, tradesKey(source, series, date))
    const { rounded } = rows
    tally.roundedPrices += rounded
    const temporary = await stageTradesFile(path, rows, { source, series, date, rounded })
    const file = { path, date, rows: rows.length }
    if (!existsSync(path)) onFile({ ...file, status: 'written', temporary })
    else if (await haveEqualBytes(path, temporary)) {
      await rm(temporary)
      onFile({ ...file, status: 'unchanged', temporary: undefined })
    } else onFile({ ...file, status: 'replaced', temporary })
  }
  for (const series of await seriesWithTrades(lake, source, date)) {
    const path = join(lake, tradesKey(source, series, date))
    if (!bySeries.has(series)) onFile({ path, date, rows: 0, status: 'removed', temporary: undefined })
  }
}

/** The series that have a trades file of the date. */
export async function seriesWithTrades(lake: string, source: LobSource, date: string): Promise<string[]> {
  const found: string[] = []
  for (const name of await readdir(tradesSourceDirectory(lake, source)).catch(() => [])) {
    const series = name.startsWith('series=') ? name.slice('series='.length) : ''
    const key = tradesKey(source, series, date)
    if (derivedFileOfKey(key) !== undefined && existsSync(join(lake, key))) found.push(series)
  }
  return found
}

/** Renames the staged files to their names, and removes those without trades. Synchronous. */
export function publishTrades(files: readonly Pick<StagedTrades, 'path' | 'status' | 'temporary'>[]): void {
  for (const { path, status, temporary } of files) {
    if (temporary !== undefined) renameSync(temporary, path)
    else if (status === 'removed') rmSync(path, { force: true })
  }
}

/** After publication or a failure: removes temporary files and empty directories, and syncs the other directories. */
export async function settleTrades(
  lake: string,
  files: readonly Pick<StagedTrades, 'path' | 'temporary'>[],
): Promise<void> {
  for (const { path, temporary } of files) {
    if (temporary !== undefined) await rm(temporary, { force: true })
    await syncDirectory(dirname(path))
    await removeWhileEmpty(dirname(path), join(lake, 'trades'))
  }
}
