// The order-book file of one series while its date is still being recorded. Closed hours lie encoded in a part file, as
// they will stand in the finished file. The open hour follows as slices, each sorted by market in itself: a slice is
// encoded once when it is large enough, and what came after the last one is encoded anew at each publication. When the
// hour closes its slices are cut off and the whole hour is written sorted. So a publication costs one slice at most,
// whatever the hour holds, and the finished file has the bytes that an import of the same messages gives.

import { constants, existsSync, mkdirSync, renameSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { copyFile, open, rm } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { lobFilePath } from '../../../shared/lake-layout.ts'
import type { LobSource } from '../../../shared/lake-layout.ts'
import { CONSOLIDATE_ROWS_MAX } from '../../../shared/limits.ts'
import { MS_PER_HOUR, NS_PER_DAY, NS_PER_HOUR, NS_PER_MS, utcDateOf } from '../../../shared/utc-date.ts'
import { syncDirectory, writeFully } from '../../lake/durable-file.ts'
import type { SpilledEvents } from '../../lake/event-spill.ts'
import { ExactBook } from '../../lake/exact-book.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { HourConsolidation } from '../../lake/hour-consolidation.ts'
import { LobFileContents } from '../../lake/lob-file-contents.ts'
import type { LobFileContentsState } from '../../lake/lob-file-contents.ts'
import { verifyLobFile } from '../../lake/lob-file-verify.ts'
import { PARQUET_MAGIC } from '../../lake/lob-footer.ts'
import type { LobRowGroup } from '../../lake/lob-row-group.ts'
import { SeriesRecording } from '../../lake/series-recording.ts'
import type { SeriesRecordingState } from '../../lake/series-recording.ts'
import { temporaryPath } from '../../lake/temporary-file.ts'

/** A series between two hours, as plain data. */
export interface LiveSeriesState {
  readonly series: string
  readonly recording: SeriesRecordingState
  /** The books at the open hour's start, by market index; undefined where unknown. */
  readonly books: readonly (readonly BookLevel[] | undefined)[]
  readonly closed: LobFileContentsState
}

export interface LiveSeriesOptions {
  readonly lake: string
  readonly source: LobSource
  /** Where part files and spilled events go. */
  readonly workDirectory: string
  /** Shared by all series: one is written at a time. */
  readonly group: LobRowGroup
  readonly sliceRows: number
  /** An existing lake file that the recorder did not write has been put aside under another name. */
  readonly onKeptAside: (path: string) => void
}

export class LiveSeries {
  readonly series: string
  readonly #options: LiveSeriesOptions
  #recording: SeriesRecording
  /** The hour (since the epoch) that is open, and the date that it belongs to. */
  #hour: number
  #date: string
  /** The part file's contents: without and with the slices of the open hour. */
  #closed: LobFileContents
  #sealed: LobFileContents
  #sealedRecords = 0
  /** By market index: the books at the open hour's start, and after its sealed slices. */
  #startBooks: ExactBook[]
  #sliceBooks: ExactBook[]
  #isChanged: boolean

  constructor(series: string, hour: number, options: LiveSeriesOptions, state?: LiveSeriesState) {
    this.series = series
    this.#options = options
    this.#hour = hour
    this.#date = utcDateOf(hour * MS_PER_HOUR)
    this.#recording = this.#newRecording(state?.recording)
    this.#closed = new LobFileContents(state?.closed)
    this.#sealed = new LobFileContents(state?.closed)
    this.#startBooks = (state?.books ?? []).map((levels) => ExactBook.of(levels))
    this.#sliceBooks = this.#startBooks.map((book) => book.copy())
    this.#isChanged = state !== undefined
  }

  get recording(): SeriesRecording {
    return this.#recording
  }

  /** The part file, which exists from the first publication of a date to its end. */
  get partPath(): string {
    return partPathOf(this.#options, this.series, this.#date)
  }

  /** What was appended or covered since is not yet in the lake. */
  markChanged(): void {
    this.#isChanged = true
  }

  state(): LiveSeriesState {
    return {
      series: this.series,
      recording: this.#recording.state(),
      books: this.#startBooks.map((book) => (book.isKnown ? book.levels() : undefined)),
      closed: this.#closed.state(),
    }
  }

  /** Cuts the part file back to the closed hours. False when it is not there as it was. */
  restorePart(): boolean {
    if (!existsSync(this.partPath)) return !this.#closed.hasRows
    try {
      if (statSync(this.partPath).size < this.#closed.sizeBytes) return false
      truncateSync(this.partPath, this.#closed.sizeBytes)
      return true
    } catch {
      return false
    }
  }

  /** Publishes the date as far as it is recorded, and the next one if it has begun. Cheap when nothing has changed. */
  async publish(): Promise<void> {
    if (!this.#isChanged) return
    this.#isChanged = false
    await this.#seal()
    await this.#publishFile(false)
  }

  /**
   * The open hour is over: its rows are written for good, the file is read back and published, and the next hour is
   * open. At the end of a date `finishedPart` is its part file, which can be removed when the state is safe.
   */
  async closeHour(): Promise<{ readonly finishedPart: string | undefined }> {
    const hour = this.#hour
    const hasRows = this.#hasRows(hour, this.#startBooks)
    this.#growBooks()
    this.#sealed = new LobFileContents(this.#closed.state())
    if (hasRows) {
      await this.#appendPart(async (write) => {
        await this.#writeHour(hour, this.#recording.hours.get(hour), this.#startBooks, true, write)
      })
    }
    this.#closed = new LobFileContents(this.#sealed.state())
    this.#recording.dropHour(hour)
    this.#sealedRecords = 0
    this.#sliceBooks = this.#startBooks.map((book) => book.copy())
    const isDateEnd = utcDateOf((hour + 1) * MS_PER_HOUR) !== this.#date
    // Events that are already there belong to the next hour: the file is whole with them or without.
    this.#hour = hour + 1
    if (hasRows || (isDateEnd && this.#closed.hasRows)) await this.#publishFile(true)
    if (!isDateEnd) return { finishedPart: undefined }
    const finishedPart = this.partPath
    this.#enterDate()
    return { finishedPart }
  }

  #enterDate(): void {
    this.#date = utcDateOf(this.#hour * MS_PER_HOUR)
    this.#closed = new LobFileContents()
    this.#sealed = new LobFileContents()
    this.#forgetMarkets()
    this.#isChanged = true
  }

  /** Markets that are over: no book is known and nothing waits. Without this every market ever seen would stay. */
  #forgetMarkets(): void {
    const state = this.#recording.state()
    const waiting = new Set(state.events.map(({ marketId }) => marketId))
    const kept = state.markets.map(({ id }, index) => this.#startBooks[index]!.isKnown || waiting.has(id))
    for (const hour of this.#recording.hours.values()) hour.drop()
    this.#recording = this.#newRecording({
      ...state,
      markets: state.markets.filter((_, index) => kept[index]),
    })
    this.#startBooks = this.#startBooks.filter((_, index) => kept[index])
    this.#sliceBooks = this.#startBooks.map((book) => book.copy())
  }

  #newRecording(state: SeriesRecordingState | undefined): SeriesRecording {
    const { workDirectory, source } = this.#options
    const directory = join(workDirectory, 'spill', source)
    return new SeriesRecording(
      this.series,
      (hour) => {
        mkdirSync(directory, { recursive: true })
        return join(directory, `${this.series}-${hour}`)
      },
      state,
    )
  }

  /** Encodes what has gathered since the last slice, if it is enough for one. */
  async #seal(): Promise<void> {
    const spill = this.#recording.hours.get(this.#hour)
    if (spill === undefined || spill.rows - this.#sealedRecords < this.#options.sliceRows) return
    this.#growBooks()
    const isFirst = this.#sealedRecords === 0
    await this.#appendPart(async (write) => {
      const slice = spill.since(this.#sealedRecords)
      this.#sealed.startSlice()
      await this.#writeHour(this.#hour, slice, this.#sliceBooks, isFirst, write)
    })
    this.#sealedRecords = spill.rows
  }

  // The date of the open hour, with the hour that follows it when messages of that have come already.
  async #publishFile(isForGood: boolean): Promise<void> {
    this.#growBooks()
    const books = this.#sliceBooks.map((book) => book.copy())
    const contents = new LobFileContents(this.#sealed.state())
    const rest = this.#recording.hours.get(this.#hour)?.since(this.#sealedRecords)
    const next = this.#hour + 1
    const isOpen = utcDateOf(this.#hour * MS_PER_HOUR) === this.#date
    const isFirst = this.#sealedRecords === 0
    const hasRows = isOpen && (!isFirst || this.#hasRows(this.#hour, books))
    if (hasRows || contents.hasRows) {
      await this.#writeLakeFile(this.#date, contents, isForGood, async (write) => {
        if (hasRows) {
          contents.startSlice()
          await this.#writeHour(this.#hour, rest, books, isFirst, write)
        }
        if (isOpen && utcDateOf(next * MS_PER_HOUR) === this.#date) await this.#writeNext(next, books, write)
      })
    }
    const nextDate = utcDateOf(next * MS_PER_HOUR)
    if (nextDate === this.#date || isForGood || !this.#hasRows(next, books)) return
    await this.#writeLakeFile(nextDate, new LobFileContents(), false, (write) =>
      this.#writeNext(next, books, write),
    )
  }

  async #writeNext(hour: number, books: ExactBook[], write: WriteGroup): Promise<void> {
    if (!this.#hasRows(hour, books)) return
    await this.#writeHour(hour, this.#recording.hours.get(hour), books, true, write)
  }

  /** Whether an hour that begins with these books has rows: something happened, or a book was watched. */
  #hasRows(hour: number, books: readonly ExactBook[]): boolean {
    const { hours, coversTo } = this.#recording
    const isWatched = coversTo !== undefined && coversTo >= BigInt(hour) * NS_PER_HOUR
    return hours.has(hour) || (isWatched && books.some((book) => book.isKnown))
  }

  #growBooks(): void {
    const markets = this.#recording.marketIds().length
    while (this.#startBooks.length < markets) this.#startBooks.push(new ExactBook())
    while (this.#sliceBooks.length < markets) this.#sliceBooks.push(new ExactBook())
  }

  async #writeHour(
    hour: number,
    events: SpilledEvents | undefined,
    books: readonly ExactBook[],
    hasKeyframes: boolean,
    write: WriteGroup,
  ): Promise<void> {
    const markets = { ids: this.#recording.marketIds(), order: this.#recording.marketOrder(), books }
    const { group } = this.#options
    group.clear()
    const options = { passRowsMax: CONSOLIDATE_ROWS_MAX, group, write }
    await new HourConsolidation(markets, options).write(hour, events, hasKeyframes)
  }

  /** Adds row groups to the part file, after cutting it back to what `#sealed` says. */
  async #appendPart(produce: (write: WriteGroup) => Promise<void>): Promise<void> {
    this.#claim(this.#date)
    const file = await open(this.partPath, 'r+')
    try {
      await file.truncate(this.#sealed.sizeBytes)
      await produce((group) => writeGroup(file, this.#sealed, group))
      await file.sync()
    } finally {
      await file.close()
    }
  }

  /**
   * The part file also says that the lake's file of this date is ours. A file that stood there before is put aside: the
   * recorder neither merges with data it has not seen nor destroys it.
   */
  #claim(date: string): void {
    const part = partPathOf(this.#options, this.series, date)
    if (existsSync(part)) return
    const path = lobFilePath(this.#options.lake, this.#options.source, this.series, date)
    if (existsSync(path)) {
      const aside = `${temporaryPath(path).slice(0, -'.tmp'.length)}.kept`
      renameSync(path, aside)
      this.#options.onKeptAside(aside)
    }
    mkdirSync(dirname(part), { recursive: true })
    writeFileSync(`${part}.new`, PARQUET_MAGIC)
    renameSync(`${part}.new`, part)
  }

  async #writeLakeFile(
    date: string,
    contents: LobFileContents,
    isForGood: boolean,
    produce: (write: WriteGroup) => Promise<void>,
  ): Promise<void> {
    this.#claim(date)
    const { lake, source } = this.#options
    const path = lobFilePath(lake, source, this.series, date)
    mkdirSync(dirname(path), { recursive: true })
    const temporary = temporaryPath(path)
    try {
      await copyFile(partPathOf(this.#options, this.series, date), temporary, constants.COPYFILE_FICLONE)
      const file = await open(temporary, 'r+')
      try {
        await file.truncate(contents.sizeBytes)
        await produce((group) => writeGroup(file, contents, group))
        if (!contents.hasRows) return
        const footer = contents.footer(this.#labels(date))
        await writeFully(file, footer.bytes, contents.sizeBytes)
        if (isForGood) await file.sync()
      } finally {
        await file.close()
      }
      if (isForGood) await verifyLobFile(temporary)
      renameSync(temporary, path)
      if (isForGood) await syncDirectory(dirname(path))
    } finally {
      await rm(temporary, { force: true })
    }
  }

  #labels(date: string) {
    const { source } = this.#options
    const { coversFrom, coversTo } = this.#recording
    const dayStart = BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS
    const dayEnd = dayStart + NS_PER_DAY - 1n
    return {
      source,
      series: this.series,
      date,
      coversFrom: coversFrom! > dayStart ? coversFrom! : dayStart,
      coversTo: coversTo! < dayEnd ? coversTo! : dayEnd,
    }
  }
}

type WriteGroup = (group: LobRowGroup) => Promise<void>

async function writeGroup(file: FileHandle, contents: LobFileContents, group: LobRowGroup): Promise<void> {
  const offset = contents.sizeBytes
  await writeFully(file, contents.add(group), offset)
}

function partPathOf(
  { workDirectory, source }: Pick<LiveSeriesOptions, 'workDirectory' | 'source'>,
  series: string,
  date: string,
): string {
  return join(workDirectory, 'parts', source, series, `date=${date}.part`)
}
