// Publishes a series' files from the recorder in the lake. The file of a date is derived from its raw segments, and follows the first
// of them: a file without raw segments is from version 0.1, whose rows are kept as raw segments (kept-rows.ts).

import { stat } from 'node:fs/promises'
import { noneThere } from '../../shared/errno.ts'
import { lobFilePath, lobSeriesDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { MERGE_WAIT_MS_MAX, MergeBusy, withSeries } from '../fold/series-lock.ts'
import { syncNames } from '../lake/durable-file.ts'
import { publishPartition, removeStaleTemporaries } from '../lake/temporary-file.ts'

export interface DatePublicationOptions {
  readonly lake: string
  readonly source: LobSource
  /** Whether the log has not yet been read up to the end of an earlier process, whose file still covers more. */
  readonly isBehind: () => boolean
  /** Whether a date has raw segments. */
  readonly hasRaw: (date: string) => boolean
  readonly onWarning: (text: string) => void
}

/** Whether the hours of a file are final, and whether its date is over. */
export interface DateEnd {
  readonly isForGood: boolean
  readonly isDateOver: boolean
  /** Other recorders have segments of the date too: its file is folded from all segments. */
  readonly isShared: boolean
  /** Aborts if another process has taken over the series' lock. */
  readonly lost?: AbortSignal | undefined
}

/** Warn if another process holds the lock for longer. */
const BUSY_MS_USUAL = 60_000
const REMIND_MS = 60 * 60 * 1000

export class DatePublication {
  readonly #series: string
  readonly #options: DatePublicationOptions
  /** Dates whose file this process has published. */
  readonly #published = new Set<string>()
  #toldMs = Number.NEGATIVE_INFINITY
  /** Since when another process writes to the series' files. */
  #busySinceMs: number | undefined

  constructor(series: string, options: DatePublicationOptions) {
    this.#series = series
    this.#options = options
  }

  /**
   * Runs `publish` while no other process writes to the series' files; false where one does. A date that is over waits for its
   * end.
   */
  async alone(isDateOver: boolean, publish: (lost: AbortSignal) => Promise<void>): Promise<boolean> {
    const { lake, source } = this.#options
    const waitMs = isDateOver ? MERGE_WAIT_MS_MAX : 0
    const onWait = (owner: string): void => this.#tellBusy(owner)
    try {
      await withSeries({ lake, source, series: this.#series }, { waitMs, onWait }, publish)
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
   * Gives the finished file `temporary`, in the lake's directory of the series, its name. False where the date has no
   * raw segments yet, or where the lake's file stays because it covers more for now. The caller has the series' lock.
   */
  async publish(date: string, temporary: string, { isForGood, isDateOver, lost }: DateEnd): Promise<boolean> {
    const path = this.#pathOf(date)
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

  #tellBusy(owner: string): void {
    if (performance.now() - this.#toldMs < REMIND_MS) return
    this.#toldMs = performance.now()
    this.#options.onWarning(
      `the recording of ${this.#series} is published when ${owner} has ended writing its files`,
    )
  }

  #pathOf(date: string): string {
    return lobFilePath(this.#options.lake, this.#options.source, this.#series, date)
  }
}
