// Writes events in replay order into the lake, as files of whole UTC dates. All files are finished and read back before the first
// is published, so an interruption publishes nothing. If a file exists already, the write is refused, or the file is left (same
// bytes) or replaced as a whole.

import { rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { lobSeriesDirectory } from '../../shared/lake-layout.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { syncNames } from './durable-file.ts'
import { removeWhileEmpty } from './empty-directories.ts'
import type { LobFileWriter } from './lob-file-writer.ts'
import { describeFiles, publishFiles } from './lob-publication.ts'
import type { WrittenLobFile } from './lob-publication.ts'
import { LobRowGroup } from './lob-row-group.ts'
import { SeriesFold } from './series-fold.ts'
import type { FoldedFile } from './series-fold.ts'
import type { BookEvent, SeriesRecording } from './series-recording.ts'
import { SeriesRecordings } from './series-recordings.ts'
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

export class LobRecordingWriter {
  readonly #options: LobRecordingWriterOptions
  readonly #spillDirectory: string
  readonly #recordings: SeriesRecordings
  readonly #writers: LobFileWriter[] = []

  constructor(options: LobRecordingWriterOptions) {
    this.#options = options
    this.#spillDirectory = temporaryPath(join(options.lake, 'spill'))
    this.#recordings = new SeriesRecordings(this.#spillDirectory, options.bounds?.spillBytes)
  }

  /**
   * Takes one event; those of one market must come in replay order. Synchronous: when the memory bound is reached, it writes
   * to the spill files before it returns.
   */
  append(series: string, event: BookEvent): void {
    this.#recordings.grow(this.#recording(series).append(event))
  }

  /** Declares that the recording covers the series at `ts` (ns), with or without events at that time. */
  cover(series: string, ts: bigint): void {
    this.#recording(series).cover(ts)
  }

  /** Bytes of events in memory. */
  get heldBytes(): number {
    return this.#recordings.heldBytes
  }

  /**
   * Writes, verifies and publishes every file. If it rejects, nothing temporary is left, and nothing is published unless the system
   * failed while publishing. It throws an error for the user if existing data prevents publication.
   */
  async finish(): Promise<WrittenLobFile[]> {
    try {
      await removeStaleTemporaries(this.#options.lake)
      const files: FoldedFile[] = []
      for (const recording of [...this.#recordings].toSorted((a, b) => (a.series < b.series ? -1 : 1)))
        files.push(...(await this.#fold(recording)))
      return await this.#publish(files)
    } finally {
      await this.discard()
    }
  }

  /** Removes everything temporary. No effect after `finish`. */
  async discard(): Promise<void> {
    const { lake, source } = this.#options
    for (const writer of this.#writers) await writer.discard()
    await rm(this.#spillDirectory, { recursive: true, force: true })
    for (const { series } of this.#recordings)
      await removeWhileEmpty(lobSeriesDirectory(lake, source, series), join(lake, 'lob'))
  }

  async #fold(recording: SeriesRecording): Promise<readonly FoldedFile[]> {
    const { lake, source, bounds, isSample } = this.#options
    await removeStaleTemporaries(lobSeriesDirectory(lake, source, recording.series))
    const fold = new SeriesFold(recording, {
      isSample,
      lake,
      source,
      passRowsMax: bounds?.passRows,
      group: new LobRowGroup(bounds?.groupRows),
      signal: new AbortController().signal,
      onFile: (writer) => this.#writers.push(writer),
    })
    return await fold.run()
  }

  async #publish(files: readonly FoldedFile[]): Promise<WrittenLobFile[]> {
    const { lake, onExisting } = this.#options
    const written = await describeFiles(files)
    const inTheWay = written.filter(({ status }) => status === 'replaced')
    if (inTheWay.length > 0 && onExisting !== 'replace') {
      const paths = inTheWay.map(({ path }) => relative(lake, path))
      throw new Error(
        `the lake already holds other data in ${paths.join(', ')}; --replace writes these dates anew`,
      )
    }
    publishFiles(files, written)
    await syncNames(written.map(({ path }) => path))
    return written
  }

  #recording(series: string): SeriesRecording {
    if (!isSeriesName(series))
      throw new RangeError(`"${series}" cannot be a series: it becomes a directory's name`)
    return this.#recordings.of(series)
  }
}
