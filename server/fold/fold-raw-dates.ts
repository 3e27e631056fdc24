// Folds dates of a lake from its raw segments and publishes their order-book files. All files of a run are finished and read back
// before the first is published. The manifest of a date is written last, so it never lists more than its files contain.

import { renameSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { messageOf } from '../../shared/error-message.ts'
import { lobSeriesDirectory, lobSourceDirectory, rawDateDirectory, rawKey } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { addDays, utcDatesBetween } from '../../shared/utc-date.ts'
import { syncNames } from '../lake/durable-file.ts'
import { removeWhileEmpty } from '../lake/empty-directories.ts'
import { describeFiles, publishFiles } from '../lake/lob-publication.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import { removeStaleTemporaries, stageFile } from '../lake/temporary-file.ts'
import { MERGE_WAIT_MS_MAX, takeLock } from './series-lock.ts'
import type { MergeLock, MergeLockOptions } from './series-lock.ts'
import {
  addsUnlisted,
  isFetched,
  isSealed,
  manifestPath,
  manifestText,
  readManifest,
  segmentsOnDisk,
} from '../raw/date-manifest.ts'
import type { DateManifest, ManifestSegment } from '../raw/date-manifest.ts'
import { foldTrades, publishTrades, settleTrades } from '../trades/trades-fold.ts'
import type { MidnightLines } from '../trades/trade-reading.ts'
import type { StagedTrades } from '../trades/trades-fold.ts'
import type { DecodedSegments } from './decoded-lines.ts'
import type { DateRule, FoldListeners, FoldOrder, FoldOutcome, FoldWriting } from './fold-order.ts'
import { FoldReport } from './fold-report.ts'
import { FoldTally } from './fold-tally.ts'
import { FOLD_STATE_NAME, digestOf, hasFoldState, readFoldState, stageFoldState } from './fold-state.ts'
import { isUnkept } from './kept-rows.ts'
import { RawPieces } from './raw-pieces.ts'
import { SourceFold } from './source-fold.ts'
import type { FoldedDate } from './source-fold.ts'

/** The version of the rules by which raw segments become order-book files. A change of the rules raises it. */
export const FOLD_VERSION = 1

/** The recording lacks series of which the date has, or had, order-book files. The message names them and the remedy. */
export class MissingSeriesError extends Error {
  constructor(source: LobSource, date: string, series: readonly string[]) {
    super(
      `${source} ${date} has order-book files of ${series.join(', ')}, of which the recording holds no messages. ` +
        'Replacing a date replaces all of its series. Import everything recorded of the date at once with --replace. To give ' +
        `up these series, remove their files and ${rawKey(source, date, FOLD_STATE_NAME)} first.`,
    )
    this.name = 'MissingSeriesError'
  }
}

/** Publishing failed after some files were in the lake. The same call completes them. */
export class PublishedInPartError extends Error {
  /** Relative to the lake. */
  readonly paths: readonly string[]

  constructor(paths: readonly string[], cause: unknown) {
    super(messageOf(cause), { cause })
    this.name = 'PublishedInPartError'
    this.paths = paths
  }
}

/**
 * Folds the dates of an order in the calling thread, and the neighbouring dates that change with them. `decoded` has segments that
 * the caller has just read.
 * @throws {PublishedInPartError} if publishing fails after the first file
 */
export async function foldRawDates(
  order: FoldOrder,
  listeners: FoldListeners,
  signal: AbortSignal,
  decoded?: DecodedSegments,
): Promise<FoldOutcome> {
  return await new RawFold(order, listeners, signal, decoded).run()
}

class RawFold {
  readonly #order: FoldOrder
  readonly #listeners: FoldListeners
  readonly #signal: AbortSignal
  readonly #decoded: DecodedSegments | undefined
  readonly #tally = new FoldTally()
  readonly #locks: MergeLock[] = []
  readonly #segments = new Map<string, ManifestSegment[]>()
  readonly #published: string[] = []
  /** Fold states and manifests that wait for publication. */
  readonly #metadata: { readonly temporary: string; readonly path: string }[] = []
  /** Trades files, which wait for publication. */
  readonly #trades: StagedTrades[] = []
  readonly #midnights = new Map<string, readonly MidnightLines[]>()
  readonly #lost = new AbortController()

  constructor(
    order: FoldOrder,
    listeners: FoldListeners,
    signal: AbortSignal,
    decoded: DecodedSegments | undefined,
  ) {
    this.#order = order
    this.#listeners = listeners
    this.#signal = signal
    this.#decoded = decoded
  }

  async run(): Promise<FoldOutcome> {
    const { lake, source, isLocked = false } = this.#order
    try {
      // Two concurrent folds would each publish a file without the other's messages.
      if (!isLocked) this.#locks.push(await takeLock({ lake, source }, this.#waiting))
      return await this.#fold()
    } finally {
      for (const lock of this.#locks.toReversed()) await lock.release()
    }
  }

  get #waiting(): MergeLockOptions {
    return {
      waitMs: MERGE_WAIT_MS_MAX,
      signal: this.#signal,
      onWait: (owner) => this.#listeners.onWait?.(owner),
      onLost: (error) => this.#lost.abort(error),
    }
  }

  async #fold(): Promise<FoldOutcome> {
    const { lake, source, dates } = this.#order
    const names = await this.#segmentNames()
    const stop = AbortSignal.any([this.#signal, this.#lost.signal])
    const raw = new RawPieces({
      lake,
      source,
      decoded: this.#decoded,
      segmentsOf: (date) => names.get(date) ?? [],
      signal: stop,
      onSegment: (date, segment) => {
        const list = this.#segments.get(date)
        if (list === undefined) this.#segments.set(date, [segment])
        else list.push(segment)
        this.#listeners.onSegment?.(date, names.get(date)!.length)
      },
    })
    const report = new FoldReport()
    const tally = this.#tally
    const onWrite = (writing: FoldWriting): void => this.#listeners.onWrite?.(writing)
    const fold = new SourceFold({
      ...this.#order,
      raw,
      isFolded: async (date) => await isFolded(lake, source, date, names.get(date) ?? []),
      tally,
      report,
      signal: stop,
      onWrite,
    })
    try {
      const folded = await fold.fold(dates)
      await this.#foldTrades(folded, names, stop)
      const files = await this.#publish(folded)
      report.countLosses(tally)
      return { files, trades: this.#trades, tally, days: report.days }
    } catch (error) {
      if (this.#published.length > 0) throw new PublishedInPartError(this.#published, error)
      stop.throwIfAborted()
      throw error
    } finally {
      for (const writer of fold.writers) await writer.discard()
      for (const { temporary } of this.#metadata) await rm(temporary, { force: true })
      await settleTrades(lake, this.#trades)
      await rm(fold.spillDirectory, { recursive: true, force: true })
      const seriesDirectories = [...fold.series].map((series) => lobSeriesDirectory(lake, source, series))
      // What killed folds have left.
      for (const directory of [
        lobSourceDirectory(lake, source),
        ...seriesDirectories,
        ...[...this.#segments.keys()].map((date) => rawDateDirectory(lake, source, date)),
        ...this.#trades.map(({ path }) => dirname(path)),
      ])
        await removeStaleTemporaries(directory)
      for (const directory of seriesDirectories) await removeWhileEmpty(directory, join(lake, 'lob'))
    }
  }

  /** The segments that count, for each date that may change. */
  async #segmentNames(): Promise<ReadonlyMap<string, readonly string[]>> {
    const { lake, source, dates, rules } = this.#order
    const [first, last] = [dates.toSorted()[0], dates.toSorted().at(-1)]
    const names = new Map<string, readonly string[]>()
    if (first === undefined || last === undefined) return names
    // A date without a state is folded first, or this one would begin without its books.
    let start = addDays(first, -1)
    while (
      (await segmentsOf(lake, source, start, undefined)).length > 0 &&
      !(await hasFoldState(lake, await readManifest(lake, source, start)))
    )
      start = addDays(start, -1)
    // A change runs on as long as each date's opening changes.
    for (const date of utcDatesBetween(start, addDays(last, NEIGHBOURS_MAX)))
      names.set(date, await segmentsOf(lake, source, date, rules?.get(date)))
    return names
  }

  async #foldTrades(
    folded: readonly FoldedDate[],
    names: ReadonlyMap<string, readonly string[]>,
    signal: AbortSignal,
  ): Promise<void> {
    const { lake, source, rules } = this.#order
    // A fold also derives the trades of the neighbouring dates, which are in the segments of their neighbours too.
    const near = new Map(names)
    // Of dates without segments, their states have the lines near midnight.
    const kept = new Map<string, readonly MidnightLines[]>()
    for (const { date } of folded)
      for (const each of utcDatesBetween(addDays(date, -2), addDays(date, 2))) {
        if (!near.has(each)) near.set(each, await segmentsOf(lake, source, each, rules?.get(each)))
        if (near.get(each)!.length > 0 || kept.has(each)) continue
        kept.set(each, (await readFoldState(rawDateDirectory(lake, source, each)))?.midnight ?? [])
      }
    const removed = new Map([...kept.values()].flat().map((lines) => [lines.name, lines]))
    await foldTrades(
      folded.map(({ date }) => date),
      {
        lake,
        source,
        segmentsOf: (date) => kept.get(date)?.map(({ name }) => name) ?? near.get(date) ?? [],
        linesOf: (name) => removed.get(name) ?? this.#decoded?.tradesOf(name),
        hasSegments: (date) => (near.get(date) ?? []).length > 0,
        signal,
      },
      this.#tally,
      (file) => this.#trades.push(file),
      ({ date, midnight }) => this.#midnights.set(date, midnight),
    )
  }

  /** Locks the series until the end, in the order of their names. */
  async #lock(series: readonly string[]): Promise<void> {
    const { lake, source } = this.#order
    for (const name of series) this.#locks.push(await takeLock({ lake, source, series: name }, this.#waiting))
  }

  // Nothing is awaited between the first and the last rename, so no abort comes between them.
  async #publish(folded: readonly FoldedDate[]): Promise<WrittenLobFile[]> {
    const { lake, isDryRun = false } = this.#order
    const files = folded.flatMap((date) => date.files)
    for (const date of folded) await this.#checkFiles(date)
    if (!isDryRun) await this.#lock([...new Set(files.map(({ series }) => series))].toSorted())
    const written = await describeFiles(files)
    // Everything that needs disk space is written before the first rename.
    if (!isDryRun) for (const date of folded) await this.#stageMetadata(date)
    this.#signal.throwIfAborted()
    this.#lost.signal.throwIfAborted()
    if (!isDryRun) {
      publishFiles(files, written, (path) => this.#published.push(relative(lake, path)))
      publishTrades(this.#trades)
      for (const { temporary, path } of this.#metadata) renameSync(temporary, path)
      const paths = [...files.map(({ writer }) => writer.path), ...this.#metadata.map(({ path }) => path)]
      await syncNames(paths)
    }
    return written
  }

  async #checkFiles({ date, files }: FoldedDate): Promise<void> {
    const { lake, source, rules } = this.#order
    const { requiredSeries = [], replacedBy } = rules?.get(date) ?? {}
    const missing = requiredSeries.filter((series) => !files.some((file) => file.series === series))
    if (missing.length > 0) throw new MissingSeriesError(source, date, missing)
    if (replacedBy !== undefined) return
    const names = this.#segments.get(date)?.map(({ name }) => name) ?? []
    for (const { writer } of files) {
      if (!(await isUnkept(writer.path, names))) continue
      throw new Error(
        `${source} ${date} cannot be added to: ${relative(lake, writer.path)} was written without raw segments, by version 0.1. ` +
          'A collector that runs on this date or the next one keeps its rows as raw segments within seconds. Later, import ' +
          'everything recorded of the date at once with --replace.',
      )
    }
  }

  /** Writes the state and the manifest of a date beside those that they replace, the manifest last. */
  async #stageMetadata({ date, state }: FoldedDate): Promise<void> {
    const { lake, source } = this.#order
    const before = await readManifest(lake, source, date)
    const midnight = this.#midnights.get(date)
    this.#metadata.push(await stageFoldState(rawDateDirectory(lake, source, date), { ...state, midnight }))
    const manifest: DateManifest = {
      source,
      date,
      epoch: this.#order.rules?.get(date)?.replacedBy ?? before?.epoch ?? 0,
      fold: FOLD_VERSION,
      segments: this.#segments.get(date) ?? before?.segments ?? [],
      opening: state.opening,
      closing: digestOf([state.closing, state.continued]),
    }
    const path = manifestPath(lake, source, date)
    this.#metadata.push({ temporary: await stageFile(path, manifestText(manifest)), path })
  }
}

/** The segments that count. One that the manifest lists counts even if it is missing: its absence is an error. */
async function segmentsOf(
  lake: string,
  source: LobSource,
  date: string,
  rule: DateRule | undefined,
): Promise<readonly string[]> {
  const onDisk = await segmentsOnDisk(lake, source, date)
  if (rule?.replacedBy !== undefined)
    return [...new Set([...rule.added, ...onDisk.filter(isFetched)])].toSorted()
  const manifest = await readManifest(lake, source, date)
  // Lines that a recorder writes again from its log do not make up a date that was sealed.
  if (isSealed(manifest)) return []
  const listed = manifest?.segments.map(({ name }) => name) ?? []
  const added = new Set(rule?.added)
  const others = onDisk.filter((name) => added.has(name) || addsUnlisted(manifest, name))
  const omitted = new Set(rule?.omitted)
  return [...new Set([...listed, ...others])].filter((name) => !omitted.has(name)).toSorted()
}

/** Whether the date has a fold state, and this version derived it from these segments. */
async function isFolded(
  lake: string,
  source: LobSource,
  date: string,
  names: readonly string[],
): Promise<boolean> {
  const manifest = await readManifest(lake, source, date)
  if (manifest?.fold !== FOLD_VERSION) return false
  const known = new Set(manifest.segments.map(({ name }) => name))
  if (known.size !== names.length || !names.every((name) => known.has(name))) return false
  return await hasFoldState(lake, manifest)
}

/** Dates after the last one that a change may reach. */
const NEIGHBOURS_MAX = 31
