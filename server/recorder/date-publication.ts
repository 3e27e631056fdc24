// Publishes a recorder's files of a series in the lake: a copy of the part file, the rows after it, and a footer. The file of a date
// is published after its first raw segment: a file without raw segments counts as one of version 0.1, whose rows are kept as raw
// segments (kept-rows.ts).

import { constants, mkdirSync } from 'node:fs'
import { copyFile, open, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { noneThere } from '../../shared/errno.ts'
import { lobFilePath, lobSeriesDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { REMIND_MS } from '../../shared/limits.ts'
import { MERGE_WAIT_MS_MAX, MergeBusy, withLock } from '../fold/series-lock.ts'
import { syncNames, writeFully } from '../lake/durable-file.ts'
import type { LobFileContents } from '../lake/lob-file-contents.ts'
import { verifyLobFile } from '../lake/lob-file-verify.ts'
import { partitionDraftPath, publishPartition, removeStaleTemporaries } from '../lake/temporary-file.ts'
import type { LiveDate } from './live-date.ts'
import { createPart, partPathOf } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

export interface DatePublicationOptions {
  readonly lake: string
  readonly source: LobSource
  /** Where part files and spilled events go. */
  readonly workDirectory: string
  /** Whether the log has not yet been read up to the end of an earlier process, whose file still covers more. */
  readonly isBehind: () => boolean
  /** Whether a date has raw segments. */
  readonly hasRaw: (date: string) => boolean
  readonly onWarning: (text: string) => void
}

/** How final a publication is. */
export interface DateEnd {
  /** The hours of the file do not change any more. */
  readonly isForGood: boolean
  readonly isDateOver: boolean
  /** Other recorders have segments of the date too: its file is folded from all segments. */
  readonly isShared: boolean
  /** Aborts if another process has taken over the series' lock. */
  readonly lost?: AbortSignal | undefined
}

/** Warn if another process holds the lock for longer. */
const BUSY_MS_USUAL = 60_000

export class DatePublication {
  readonly #series: string
  readonly #options: DatePublicationOptions
  /** Dates whose file this process has published. */
  readonly #published = new Set<string>()
  #warnedMs = Number.NEGATIVE_INFINITY
  /** Since when another process writes to the series' files. */
  #busySinceMs: number | undefined

  constructor(series: string, options: DatePublicationOptions) {
    this.#series = series
    this.#options = options
  }

  /**
   * Runs `publish` under the lock of the series. False if another process holds the lock; only a date that is over waits for it.
   */
  async alone(isDateOver: boolean, publish: (lost: AbortSignal) => Promise<void>): Promise<boolean> {
    const { lake, source } = this.#options
    const waitMs = isDateOver ? MERGE_WAIT_MS_MAX : 0
    const onWait = (owner: string): void => this.#warnBusy(owner)
    try {
      await withLock({ lake, source, series: this.#series }, { waitMs, onWait }, publish)
    } catch (error) {
      if (!(error instanceof MergeBusy) || isDateOver) throw error
      this.#busySinceMs ??= performance.now()
      if (performance.now() - this.#busySinceMs > BUSY_MS_USUAL) onWait(error.owner)
      return false
    }
    this.#busySinceMs = undefined
    return true
  }

  /**
   * Publishes a copy of the date's part file with what `produce` adds. Publishes nothing if there are no rows, or if others record
   * the date too. False if the lake's file stays. The caller holds the lock of the series.
   */
  async publish(
    live: LiveDate,
    contents: LobFileContents,
    end: DateEnd,
    produce: (file: OpenFile) => Promise<void>,
  ): Promise<boolean> {
    const { lake, source } = this.#options
    const { date } = live
    const part = partPathOf(this.#options, this.#series, date)
    createPart(part)
    const path = lobFilePath(lake, source, this.#series, date)
    const temporary = partitionDraftPath(path)
    mkdirSync(dirname(temporary), { recursive: true })
    try {
      await copyFile(part, temporary, constants.COPYFILE_FICLONE)
      const file = await open(temporary, 'r+')
      try {
        await file.truncate(contents.sizeBytes)
        await produce({ file, contents })
        if (!contents.hasRows || end.isShared) return true
        const { from, to } = live.coverageOf(this.#series) ?? { from: live.dayStart, to: live.dayStart }
        const labels = { source, series: this.#series, date, coversFrom: from, coversTo: to }
        await writeFully(file, contents.footer(labels).bytes, contents.sizeBytes)
        if (end.isForGood) await file.sync()
      } finally {
        await file.close()
      }
      if (end.isForGood) await verifyLobFile(temporary)
      return await this.#rename(date, temporary, path, end)
    } finally {
      await rm(temporary, { force: true })
    }
  }

  /** False if the date has no raw segments yet, or if the lake's file stays because an earlier process has published more. */
  async #rename(
    date: string,
    temporary: string,
    path: string,
    { isForGood, isDateOver, lost }: DateEnd,
  ): Promise<boolean> {
    if (!this.#published.has(date)) {
      if (!this.#options.hasRaw(date)) return false
      const isThere = (await stat(path).catch(noneThere)) !== undefined
      if (isThere && this.#options.isBehind() && !isDateOver) return false
    }
    lost?.throwIfAborted()
    publishPartition(temporary, path)
    if (isForGood) await syncNames([path])
    this.#published.add(date)
    return true
  }

  /** The date is over. */
  async end(date: string): Promise<void> {
    // Temporary files of killed recorders.
    await removeStaleTemporaries(lobSeriesDirectory(this.#options.lake, this.#options.source, this.#series))
    this.#published.delete(date)
  }

  #warnBusy(owner: string): void {
    if (performance.now() - this.#warnedMs < REMIND_MS) return
    this.#warnedMs = performance.now()
    this.#options.onWarning(
      `${owner} is writing files of ${this.#series}; the recording of the series is published when it has finished`,
    )
  }
}
