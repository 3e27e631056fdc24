// An import from its inputs to the lake: the recordings become raw segments, and the dates that these touch are folded again.
// An import adds everything or nothing.

import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { rawDateDirectory } from '../../shared/lake-layout.ts'
import { utcDateOf } from '../../shared/utc-date.ts'
import { PublishedInPartError } from '../fold/fold-raw-dates.ts'
import type { DateRule } from '../fold/fold-raw-dates.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import { foldHere } from '../fold/fold-order.ts'
import type { FoldCounts, FoldListeners, FoldOrder, FoldOutcome, Folding } from '../fold/fold-order.ts'
import { removeEmptyRawDirectories, sealDate } from '../raw/date-removal.ts'
import { readManifest, segmentsOnDisk } from '../raw/date-manifest.ts'
import type { SegmentFacts } from '../raw/segment-writer.ts'
import { dateRules } from './date-rules.ts'
import type { MarketDay } from '../fold/fold-report.ts'
import type { SegmentingTally } from './line-filing.ts'
import { MERGE_WAIT_MS_MAX, withSource } from '../fold/series-lock.ts'
import { segmentRecordings } from './segmenting.ts'
import type { BadLines, SegmentedRecordings, SegmentingOptions, SegmentingProgress } from './segmenting.ts'

export interface ImportProgress extends SegmentingProgress, FoldListeners {}

export interface ImportOptions extends Omit<SegmentingOptions, 'progress'> {
  /** Dates that the recording has are derived from it alone. Otherwise it is added to what the lake has. */
  readonly replace: boolean
  /** The raw segments of closed dates are removed after the fold, and the dates sealed. */
  readonly keepsRaw?: boolean | undefined
  readonly progress?: ImportProgress | undefined
  /** In which thread dates are folded; by default in this one. */
  readonly folding?: Folding | undefined
  readonly nowMs?: (() => number) | undefined
  readonly bounds?: FoldOrder['bounds']
}

export interface ImportResult {
  /** The files of every date that was folded. */
  readonly files: readonly WrittenLobFile[]
  /** What the inputs hold. */
  readonly input: SegmentingTally
  /** What the fold of the dates has counted; they may have other recordings too. */
  readonly tally: FoldCounts
  /** Inputs with lines that were skipped. */
  readonly badLines: readonly BadLines[]
  /** What is known of each market in the dates that the recording has to do with. */
  readonly days: readonly MarketDay[]
  readonly segments: { readonly added: number; readonly present: number }
  /** Dates that can take no further recordings. */
  readonly sealed: readonly string[]
}

/**
 * Imports everything or throws: an error for the user, or the signal's reason. Nothing temporary stays behind.
 * @throws {PublishedInPartError} when the disk or the system fails between the first and the last file
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
    return await withSource({ lake, source }, waiting, async (lost) => {
      try {
        return await new LakeImport(segmented, options, AbortSignal.any([signal, lost])).run()
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

/** Adds segments to the lake and folds their dates, while nothing else changes the source's part of the lake. */
class LakeImport {
  readonly #recordings: SegmentedRecordings
  readonly #options: ImportOptions
  readonly #signal: AbortSignal

  constructor(recordings: SegmentedRecordings, options: ImportOptions, signal: AbortSignal) {
    this.#recordings = recordings
    this.#options = options
    this.#signal = signal
  }

  async run(): Promise<ImportResult> {
    const { tally: input, badLines, dates, segments } = this.#recordings
    const rules = await dateRules(
      this.#options,
      segments.map(({ facts }) => facts),
    )
    const added = segments.filter(({ facts }) => !existsSync(facts.path)).map(({ facts }) => facts)
    let outcome: FoldOutcome
    try {
      await this.#recordings.publish()
      outcome = await this.#fold(dates, rules)
    } catch (error) {
      if (!(error instanceof PublishedInPartError)) await this.#remove(added)
      throw error
    }
    await this.#removeReplaced(rules)
    const { files, tally } = outcome
    return {
      files,
      input,
      tally,
      badLines,
      days: reportedDays(outcome, dates),
      segments: { added: added.length, present: segments.length - added.length },
      sealed: await this.#seal(dates),
    }
  }

  async #fold(dates: readonly string[], rules: ReadonlyMap<string, DateRule>): Promise<FoldOutcome> {
    const { lake, source, progress = {}, folding = foldHere, bounds } = this.#options
    return await folding({ lake, source, dates, rules, isLocked: true, bounds }, progress, this.#signal)
  }

  /** Takes back the segments that this import has added, unless a manifest lists them already. */
  async #remove(added: readonly SegmentFacts[]): Promise<void> {
    const { lake } = this.#options
    for (const { source, date, name, path } of added) {
      const manifest = await readManifest(lake, source, date).catch(() => undefined)
      if (manifest?.segments.some((segment) => segment.name === name) !== true)
        await rm(path, { force: true })
    }
  }

  async #removeReplaced(rules: ReadonlyMap<string, DateRule>): Promise<void> {
    const { lake, source } = this.#options
    for (const [date, { added, replacedBy }] of rules) {
      if (replacedBy === undefined) continue
      for (const name of await segmentsOnDisk(lake, source, date))
        if (!added.includes(name)) await rm(join(rawDateDirectory(lake, source, date), name), { force: true })
    }
  }

  /** The dates that were sealed. One that is not over yet keeps its raw segments. */
  async #seal(dates: readonly string[]): Promise<readonly string[]> {
    const { lake, source, keepsRaw = true, nowMs = Date.now } = this.#options
    if (keepsRaw) return []
    const closed = dates.filter((date) => date < utcDateOf(nowMs()))
    for (const date of closed) await sealDate(lake, source, date)
    return closed
  }
}

/** The days of files that were changed, or of dates that the recording has. */
function reportedDays({ days, files }: FoldOutcome, dates: readonly string[]): MarketDay[] {
  const changed = new Set<string>()
  for (const { series, date, status } of files) if (status !== 'unchanged') changed.add(`${series} ${date}`)
  return days.filter(({ series, date }) => dates.includes(date) || changed.has(`${series} ${date}`))
}
