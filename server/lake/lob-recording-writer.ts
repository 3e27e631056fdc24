// Writes events in replay order into the lake, as files of whole UTC dates. All files are finished and read back before the first
// is published, so an interruption publishes nothing. If a file exists already, the write is refused, or the file is left (same
// bytes) or replaced as a whole.

import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { lobSeriesDirectory } from '../../shared/lake-layout.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SPILL_BUFFER_BYTES_MAX } from '../../shared/limits.ts'
import { syncNames } from './durable-file.ts'
import { removeWhileEmpty } from './empty-directories.ts'
import type { LobFileWriter } from './lob-file-writer.ts'
import { describeFiles, publishFiles } from './lob-publication.ts'
import type { WrittenLobFile } from './lob-publication.ts'
import { LobRowGroup } from './lob-row-group.ts'
import { SeriesFold } from './series-fold.ts'
import type { FoldedFile } from './series-fold.ts'
import { SeriesRecording } from './series-recording.ts'
import type { BookEvent } from './series-recording.ts'
import { removeStaleTemporaries, temporaryPath } from './temporary-file.ts'

export interface LobRecordingWriterOptions {
  readonly lake: string
  readonly source: LobSource
  /** How to handle an existing file with other bytes (default: refuse). */
  readonly onExisting?: 'refuse' | 'replace'
  /** The events are invented; the files are labelled as samples. */
  readonly isSample?: boolean
  /** Smaller bounds than shared/limits.ts, for tests. */
  readonly bounds?: { readonly spillBytes?: number; readonly passRows?: number; readonly groupRows?: number }
}

/** The lake holds other data for some of the dates. `paths` are relative to the lake. */
export class LobFileExistsError extends Error {
  readonly paths: readonly string[]

  constructor(paths: readonly string[]) {
    super(`the lake already holds other data in ${paths.join(', ')}; --replace writes these dates anew`)
    this.name = 'LobFileExistsError'
    this.paths = paths
  }
}

export class LobRecordingWriter {
  readonly #options: LobRecordingWriterOptions
  readonly #spillDirectory: string
  readonly #series = new Map<string, SeriesRecording>()
  readonly #abort = new AbortController()
  readonly #writers: LobFileWriter[] = []
  readonly #createdDirectories: { readonly first: string; readonly last: string }[] = []
  #heldBytes = 0
  #finishing: Promise<WrittenLobFile[]> | undefined

  constructor(options: LobRecordingWriterOptions) {
    this.#options = options
    this.#spillDirectory = temporaryPath(join(options.lake, 'spill'))
  }

  /**
   * Takes one event; those of one market must come in replay order. Synchronous: when the memory bound is reached, it writes
   * to the spill files before it returns.
   */
  append(series: string, event: BookEvent): void {
    this.#heldBytes += this.#recording(series).append(event)
    if (this.#heldBytes > (this.#options.bounds?.spillBytes ?? SPILL_BUFFER_BYTES_MAX)) this.#spill()
  }

  /** Declares that the recording covers the series at `ts` (ns), with or without events at that time. */
  cover(series: string, ts: bigint): void {
    this.#recording(series).cover(ts)
  }

  /** Bytes of events in memory. */
  get heldBytes(): number {
    return this.#heldBytes
  }

  /**
   * Writes, verifies and publishes every file. If it rejects, nothing temporary is left, and nothing is published unless
   * the system failed while publishing. It throws LobFileExistsError if existing data prevents publication.
   */
  async finish(): Promise<WrittenLobFile[]> {
    this.#finishing ??= this.#finish()
    return await this.#finishing
  }

  /** Stops a running `finish` and removes everything temporary. No effect after the end. */
  async abort(): Promise<void> {
    this.#abort.abort(new Error('the writing was aborted'))
    if (this.#finishing === undefined) await this.#cleanUp()
    else await this.#finishing.catch(() => undefined)
  }

  async #finish(): Promise<WrittenLobFile[]> {
    try {
      this.#abort.signal.throwIfAborted()
      await removeStaleTemporaries(dirname(this.#spillDirectory))
      const files: FoldedFile[] = []
      for (const [, recording] of [...this.#series].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
        files.push(...(await this.#fold(recording)))
      }
      return await this.#publish(files)
    } finally {
      await this.#cleanUp()
    }
  }

  async #fold(recording: SeriesRecording): Promise<readonly FoldedFile[]> {
    const { lake, source, bounds, isSample } = this.#options
    const directory = lobSeriesDirectory(lake, source, recording.series)
    const first = mkdirSync(directory, { recursive: true })
    if (first !== undefined) this.#createdDirectories.push({ first, last: directory })
    await removeStaleTemporaries(directory)
    const fold = new SeriesFold(recording, {
      isSample,
      lake,
      source,
      passRowsMax: bounds?.passRows,
      group: new LobRowGroup(bounds?.groupRows),
      signal: this.#abort.signal,
      onFile: (writer) => this.#writers.push(writer),
    })
    return await fold.run()
  }

  // Nothing is awaited between the first rename and the last, so no signal and no abort comes between two of them.
  async #publish(files: readonly FoldedFile[]): Promise<WrittenLobFile[]> {
    const written = await describeFiles(files)
    const inTheWay = written.filter(({ status }) => status === 'replaced')
    if (inTheWay.length > 0 && this.#options.onExisting !== 'replace')
      throw new LobFileExistsError(inTheWay.map(({ path }) => relative(this.#options.lake, path)))
    this.#abort.signal.throwIfAborted()
    publishFiles(files, written)
    await syncNames(written.map(({ path }) => path))
    return written
  }

  #recording(series: string): SeriesRecording {
    this.#abort.signal.throwIfAborted()
    const known = this.#series.get(series)
    if (known !== undefined) return known
    if (!isSeriesName(series))
      throw new RangeError(`"${series}" cannot be a series: it becomes a directory's name`)
    const prefix = `${this.#series.size}`
    const spillPath = (hour: number): string => join(this.#spillDirectory, `${prefix}-${hour}`)
    const recording = new SeriesRecording(series, spillPath)
    this.#series.set(series, recording)
    return recording
  }

  #spill(): void {
    const first = mkdirSync(this.#spillDirectory, { recursive: true })
    if (first !== undefined) this.#createdDirectories.push({ first, last: this.#spillDirectory })
    for (const recording of this.#series.values()) {
      for (const hour of recording.hours.values()) hour.spill()
    }
    this.#heldBytes = 0
  }

  async #cleanUp(): Promise<void> {
    for (const writer of this.#writers) await writer.discard()
    await rm(this.#spillDirectory, { recursive: true, force: true })
    for (const created of this.#createdDirectories) await removeWhileEmpty(created.last, created.first)
    this.#series.clear()
    this.#heldBytes = 0
  }
}
