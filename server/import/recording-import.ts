// An import from its inputs to the lake: the recordings become raw segments, and the dates of the segments are folded again. An
// import adds everything or nothing.

import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isOfRecorder, rawDateDirectory, rawSegmentOfName } from '../../shared/lake-layout.ts'
import { addDays, utcDateOf } from '../../shared/utc-date.ts'
import { PublishedInPartError, foldRawDates } from '../fold/fold-raw-dates.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import type { DateRule, FoldCounts, FoldListeners, FoldOrder, FoldOutcome } from '../fold/fold-order.ts'
import { removeEmptyRawDirectories, sealDate } from '../raw/date-removal.ts'
import { isFetched, isSealed, readManifest, segmentsOnDisk } from '../raw/date-manifest.ts'
import type { SegmentFacts } from '../raw/segment-writer.ts'
import { dateRules } from './date-rules.ts'
import type { MarketDay } from '../fold/fold-report.ts'
import type { SegmentingTally } from './line-filing.ts'
import { MERGE_WAIT_MS_MAX, withLock } from '../fold/series-lock.ts'
import { segmentRecordings } from './segmenting.ts'
import type { BadLines, SegmentedRecordings, SegmentingOptions, SegmentingProgress } from './segmenting.ts'

export interface ImportProgress extends SegmentingProgress, FoldListeners {}

export interface ImportOptions extends Omit<SegmentingOptions, 'progress'> {
  /** Derive the dates of the recording from it alone. Otherwise the recording is added to the lake's segments. */
  readonly replace: boolean
  /** False: after the fold, the raw segments of closed dates are removed and the dates are sealed. Default: true. */
  readonly keepsRaw?: boolean | undefined
  readonly progress?: ImportProgress | undefined
  readonly nowMs?: (() => number) | undefined
  readonly bounds?: FoldOrder['bounds']
}

export interface ImportResult {
  /** The files of every date that was folded. */
  readonly files: readonly WrittenLobFile[]
  /** The counters of the inputs. */
  readonly input: SegmentingTally
  /** The counters of the fold. The dates may have other recordings too. */
  readonly tally: FoldCounts
  /** Inputs with lines that were skipped. */
  readonly badLines: readonly BadLines[]
  /** What is known of each market in the dates of the recording and in changed files. */
  readonly days: readonly MarketDay[]
  readonly segments: { readonly added: number; readonly present: number }
  /** Dates that this import has sealed: nothing can be added to them. */
  readonly sealed: readonly string[]
  /** With `keepsRaw: false`: dates that keep their raw segments nevertheless. */
  readonly kept: readonly string[]
}

/**
 * Imports everything or throws: an error for the user, or the signal's reason. Nothing temporary stays behind.
 * @throws {PublishedInPartError} if the system fails between the first and the last file
 */
export async function importRecordings(options: ImportOptions): Promise<ImportResult> {
  const { lake, source, signal, progress } = options
  let recordings: SegmentedRecordings | undefined
  try {
    const segmented = (recordings = await segmentRecordings(options))
    const waiting = {
      waitMs: MERGE_WAIT_MS_MAX,
      signal,
      onWait: (owner: string) => progress?.onWait?.(owner),
    }
    return await withLock({ lake, source }, waiting, async (lost) => {
      try {
        return await addToLake(segmented, options, AbortSignal.any([signal, lost]))
      } catch (error) {
        if (!(error instanceof PublishedInPartError)) lost.throwIfAborted()
        throw error
      }
    })
  } finally {
    await recordings?.discard()
    await removeEmptyRawDirectories(lake, source)
  }
}

/** Adds segments to the lake and folds their dates. The caller holds the source's lock. */
async function addToLake(
  recordings: SegmentedRecordings,
  options: ImportOptions,
  signal: AbortSignal,
): Promise<ImportResult> {
  const { lake, source, replace, keepsRaw = true, progress = {}, bounds } = options
  const { tally: input, badLines, dates, decoded } = recordings
  const count = recordings.segments.length
  if (!replace && !keepsRaw) await dropSealed(recordings, options)
  const segments = recordings.segments.map(({ facts }) => facts)
  const rules = await dateRules(options, segments)
  const added = segments.filter(({ path }) => !existsSync(path))
  const replaced = await replacedPaths(options, rules)
  let outcome: FoldOutcome
  try {
    await recordings.publish()
    const order = { lake, source, dates: recordings.dates, rules, isLocked: true, bounds }
    outcome = await foldRawDates(order, progress, signal, decoded)
  } catch (error) {
    if (!(error instanceof PublishedInPartError)) await removeUnlisted(lake, added)
    throw error
  }
  for (const path of replaced) await rm(path, { force: true })
  const { files, tally } = outcome
  const sealed = keepsRaw ? [] : await sealDates(options, dates)
  return {
    files,
    input,
    tally,
    badLines,
    days: reportedDays(outcome, dates),
    segments: { added: added.length, present: count - added.length },
    sealed,
    kept: keepsRaw ? [] : dates.filter((date) => !sealed.includes(date)),
  }
}

/**
 * Leaves out segments that a seal has removed: the files of the date have their messages. So the same import again completes one that
 * was killed while it sealed its dates.
 */
async function dropSealed(recordings: SegmentedRecordings, { lake, source }: ImportOptions): Promise<void> {
  const sealed = new Set<string>()
  for (const date of recordings.dates) {
    const manifest = await readManifest(lake, source, date)
    if (!isSealed(manifest)) continue
    for (const segment of manifest?.sealed ?? []) sealed.add(`${date}/${segment.name}`)
  }
  await recordings.drop(({ facts: { date, name } }) => sealed.has(`${date}/${name}`))
}

/** Removes the segments that an import has added, unless a manifest lists them. */
async function removeUnlisted(lake: string, added: readonly SegmentFacts[]): Promise<void> {
  for (const { source, date, name, path } of added) {
    const manifest = await readManifest(lake, source, date).catch(() => undefined)
    if (manifest?.segments.some((segment) => segment.name === name) !== true) await rm(path, { force: true })
  }
}

/** The segments that a replacement removes. A recorder may publish others after the fold. */
async function replacedPaths(
  { lake, source }: ImportOptions,
  rules: ReadonlyMap<string, DateRule>,
): Promise<readonly string[]> {
  const paths: string[] = []
  for (const [date, { added, replacedBy }] of rules)
    for (const name of replacedBy === undefined ? [] : await segmentsOnDisk(lake, source, date))
      if (!added.includes(name) && !isFetched(name))
        paths.push(join(rawDateDirectory(lake, source, date), name))
  return paths
}

/** Seals the dates that are over and have no segment that the fold has not read. Returns the sealed ones. */
async function sealDates(
  { lake, source, nowMs = Date.now }: ImportOptions,
  dates: readonly string[],
): Promise<readonly string[]> {
  const today = utcDateOf(nowMs())
  const sealed: string[] = []
  for (const date of dates) {
    // After midnight, a recorder still has lines of the date before in memory.
    const isRecorded = (await segmentsOnDisk(lake, source, date)).some((name) =>
      isOfRecorder(rawSegmentOfName(name)!),
    )
    const isOver = date < (isRecorded ? addDays(today, -1) : today)
    if (isOver && (await sealDate(lake, source, date))) sealed.push(date)
  }
  return sealed
}

/** The days of changed files and of the recording's dates. */
function reportedDays({ days, files }: FoldOutcome, dates: readonly string[]): MarketDay[] {
  const changed = new Set<string>()
  for (const { series, date, status } of files) if (status !== 'unchanged') changed.add(`${series} ${date}`)
  return days.filter(({ series, date }) => dates.includes(date) || changed.has(`${series} ${date}`))
}
