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
import { MS_PER_HOUR, NS_PER_HOUR, NS_PER_MS, utcDateOf } from '../../../shared/utc-date.ts'
import { syncDirectory, writeFully } from '../../lake/durable-file.ts'
import type { SpilledEvents } from '../../lake/event-spill.ts'
import { HourConsolidation } from '../../lake/hour-consolidation.ts'
import { LobFileContents } from '../../lake/lob-file-contents.ts'
import type { LobFileContentsState } from '../../lake/lob-file-contents.ts'
import { verifyLobFile } from '../../lake/lob-file-verify.ts'
import { HourEvidence, carriedMarkets, encodeAnchors } from '../../lake/lob-evidence.ts'
import type { CarriedMarket } from '../../lake/lob-evidence.ts'
import { PARQUET_MAGIC } from '../../lake/lob-footer.ts'
import { MarketFold } from '../../lake/market-fold.ts'
import type { MarketFoldState } from '../../lake/market-fold.ts'
import { StrandNumbers } from '../../lake/strand-numbers.ts'
import type { LobRowGroup } from '../../lake/lob-row-group.ts'
import { SeriesRecording } from '../../lake/series-recording.ts'
import type { SeriesRecordingState } from '../../lake/series-recording.ts'
import { temporaryPath } from '../../lake/temporary-file.ts'
import type { LiveStrands } from './live-strands.ts'

/** A series between two hours, as plain data. */
export interface LiveSeriesState {
  readonly series: string
  readonly recording: SeriesRecordingState
  /** The markets at the open hour's start, by index. */
  readonly folds: readonly MarketFoldState[]
  readonly closed: LobFileContentsState
  /** The strands that the closed hours name, in the file's order. */
  readonly strands: readonly number[]
  /** The books with which the date began. */
  readonly carried: readonly CarriedMarket[]
}

export interface LiveSeriesOptions {
  readonly lake: string
  readonly source: LobSource
  /** Where part files and spilled events go. */
  readonly workDirectory: string
  /** Shared by all series: one is written at a time. */
  readonly group: LobRowGroup
  readonly sliceRows: number
  readonly strands: LiveStrands
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
  #closedNumbers: StrandNumbers
  #sealedNumbers: StrandNumbers
  #carried: readonly CarriedMarket[]
  /** By market index: the markets at the open hour's start, and after its sealed slices. */
  #startFolds: MarketFold[]
  #sliceFolds: MarketFold[]
  #gapped: readonly string[] = []
  #coveredTo = 0n
  #isChanged: boolean

  constructor(series: string, hour: number, options: LiveSeriesOptions, state?: LiveSeriesState) {
    this.series = series
    this.#options = options
    this.#hour = hour
    this.#date = utcDateOf(hour * MS_PER_HOUR)
    this.#recording = this.#newRecording(state?.recording)
    this.#closed = new LobFileContents(state?.closed)
    this.#sealed = new LobFileContents(state?.closed)
    this.#closedNumbers = new StrandNumbers(state?.strands)
    this.#sealedNumbers = new StrandNumbers(state?.strands)
    this.#carried = state?.carried ?? []
    this.#startFolds = (state?.folds ?? []).map((fold) => new MarketFold(fold))
    this.#sliceFolds = this.#startFolds.map((fold) => fold.copy())
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

  /** Notices that the recording has gone on, whether anything happened or not. */
  noticeCoverage(): void {
    const coveredTo = this.#options.strands.lastTsOf(this.series) ?? 0n
    if (coveredTo > this.#coveredTo) this.#isChanged = true
    this.#coveredTo = coveredTo
  }

  /** Markets whose book was unknown since a gap when the date was last published. */
  get gappedMarkets(): readonly string[] {
    return this.#gapped
  }

  state(): LiveSeriesState {
    return {
      series: this.series,
      recording: this.#recording.state(),
      folds: this.#startFolds.map((fold) => fold.state()),
      closed: this.#closed.state(),
      strands: this.#closedNumbers.strands,
      carried: this.#carried,
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
    this.#growFolds()
    const hasRows = this.#hasRows(hour, this.#startFolds)
    this.#sealed = new LobFileContents(this.#closed.state())
    this.#sealedNumbers = new StrandNumbers(this.#closedNumbers.strands)
    if (hasRows) {
      await this.#appendPart(async (file) => {
        await this.#writeHour(hour, this.#recording.hours.get(hour), this.#startFolds, true, file)
      })
    }
    this.#closed = new LobFileContents(this.#sealed.state())
    this.#closedNumbers = new StrandNumbers(this.#sealedNumbers.strands)
    this.#recording.dropHour(hour)
    this.#sealedRecords = 0
    this.#sliceFolds = this.#startFolds.map((fold) => fold.copy())
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
    this.#closedNumbers = new StrandNumbers()
    this.#sealedNumbers = new StrandNumbers()
    this.#forgetMarkets()
    for (const fold of this.#startFolds) fold.startDate()
    this.#sliceFolds = this.#startFolds.map((fold) => fold.copy())
    const { ids, order } = { ids: this.#recording.marketIds(), order: this.#recording.marketOrder() }
    this.#carried = carriedMarkets(ids, order, this.#startFolds)
    this.#isChanged = true
  }

  /** Markets that are over: no book is known and nothing waits. Without this every market ever seen would stay. */
  #forgetMarkets(): void {
    const state = this.#recording.state()
    const waiting = new Set(state.events.map(({ marketId }) => marketId))
    const kept = state.markets.map(({ id }, index) => this.#startFolds[index]!.isKnown || waiting.has(id))
    for (const hour of this.#recording.hours.values()) hour.drop()
    this.#recording = this.#newRecording({
      ...state,
      markets: state.markets.filter((_, index) => kept[index]),
    })
    this.#startFolds = this.#startFolds.filter((_, index) => kept[index])
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
    this.#growFolds()
    const isFirst = this.#sealedRecords === 0
    await this.#appendPart(async (file) => {
      const slice = spill.since(this.#sealedRecords)
      this.#sealed.startSlice()
      await this.#writeHour(this.#hour, slice, this.#sliceFolds, isFirst, file)
    })
    this.#sealedRecords = spill.rows
  }

  // The date of the open hour, with the hour that follows it when messages of that have come already.
  async #publishFile(isForGood: boolean): Promise<void> {
    this.#growFolds()
    const folds = this.#sliceFolds.map((fold) => fold.copy())
    const contents = new LobFileContents(this.#sealed.state())
    const numbers = new StrandNumbers(this.#sealedNumbers.strands)
    const rest = this.#recording.hours.get(this.#hour)?.since(this.#sealedRecords)
    const next = this.#hour + 1
    const isOpen = utcDateOf(this.#hour * MS_PER_HOUR) === this.#date
    const isFirst = this.#sealedRecords === 0
    const hasRows = isOpen && (!isFirst || this.#hasRows(this.#hour, folds))
    if (hasRows || contents.hasRows) {
      await this.#writeLakeFile(this.#date, { contents, numbers }, isForGood, async (file) => {
        if (hasRows) {
          contents.startSlice()
          await this.#writeHour(this.#hour, rest, folds, isFirst, file)
        }
        if (isOpen && utcDateOf(next * MS_PER_HOUR) === this.#date) await this.#writeNext(next, folds, file)
      })
    }
    const ids = this.#recording.marketIds()
    this.#gapped = ids.filter((_, index) => folds[index]!.isGapped)
    const nextDate = utcDateOf(next * MS_PER_HOUR)
    if (nextDate === this.#date || isForGood || !this.#hasRows(next, folds)) return
    const nextFile = { contents: new LobFileContents(), numbers: new StrandNumbers() }
    for (const fold of folds) fold.startDate()
    const carried = carriedMarkets(ids, this.#recording.marketOrder(), folds)
    await this.#writeLakeFile(nextDate, nextFile, false, (file) =>
      this.#writeNext(next, folds, file, carried),
    )
  }

  async #writeNext(
    hour: number,
    folds: MarketFold[],
    file: OpenFile,
    carried = this.#carried,
  ): Promise<void> {
    if (!this.#hasRows(hour, folds)) return
    await this.#writeHour(hour, this.#recording.hours.get(hour), folds, true, file, carried)
  }

  /** Whether an hour that begins with these books has rows: something happened, or a book was watched. */
  #hasRows(hour: number, folds: readonly MarketFold[]): boolean {
    if (this.#recording.hours.has(hour)) return true
    const coveredTo = this.#options.strands.lastTsOf(this.series)
    const isWatched = coveredTo !== undefined && coveredTo >= BigInt(hour) * NS_PER_HOUR
    return isWatched && folds.some((fold) => fold.isKnown)
  }

  #growFolds(): void {
    const markets = this.#recording.marketIds().length
    while (this.#startFolds.length < markets) this.#startFolds.push(new MarketFold())
    while (this.#sliceFolds.length < markets) this.#sliceFolds.push(new MarketFold())
  }

  async #writeHour(
    hour: number,
    events: SpilledEvents | undefined,
    folds: readonly MarketFold[],
    hasKeyframes: boolean,
    { file, contents, numbers }: OpenFile,
    carried = this.#carried,
  ): Promise<void> {
    const markets = { ids: this.#recording.marketIds(), order: this.#recording.marketOrder(), folds }
    const { group, strands } = this.#options
    group.clear()
    const write = (rows: LobRowGroup): Promise<void> => writeGroup(file, contents, rows)
    const options = { passRowsMax: CONSOLIDATE_ROWS_MAX, group, write, strands }
    const evidence = new HourEvidence()
    const localOf = (strand: number): number => numbers.localOf(strand)
    if (!contents.hasEvidence) evidence.carry(carried, localOf)
    await new HourConsolidation(markets, options).write(hour, events, { hasKeyframes, evidence, localOf })
    if (!evidence.isEmpty) await writeEvidence(file, contents, evidence.encode())
  }

  /** Adds to the part file, after cutting it back to what `#sealed` says. */
  async #appendPart(produce: (file: OpenFile) => Promise<void>): Promise<void> {
    this.#claim(this.#date)
    const file = await open(this.partPath, 'r+')
    try {
      await file.truncate(this.#sealed.sizeBytes)
      await produce({ file, contents: this.#sealed, numbers: this.#sealedNumbers })
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
    { contents, numbers }: Omit<OpenFile, 'file'>,
    isForGood: boolean,
    produce: (file: OpenFile) => Promise<void>,
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
        await produce({ file, contents, numbers })
        if (!contents.hasRows) return
        const labels = this.#labels(date, numbers)
        await writeEvidence(file, contents, encodeAnchors(labels.strands))
        const footer = contents.footer(labels)
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

  #labels(date: string, numbers: StrandNumbers) {
    const { source, strands } = this.#options
    const { series } = this
    const dayStart = BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS
    const covered = strands.coverageOf(series, dayStart) ?? { from: dayStart, to: dayStart }
    const outlines = strands.outlinesOf(series, dayStart, numbers.strands)
    return { source, series, date, coversFrom: covered.from, coversTo: covered.to, strands: outlines }
  }
}

/** A file that rows and evidence are added to. */
interface OpenFile {
  readonly file: FileHandle
  readonly contents: LobFileContents
  readonly numbers: StrandNumbers
}

async function writeEvidence(file: FileHandle, contents: LobFileContents, bytes: Uint8Array): Promise<void> {
  const offset = contents.sizeBytes
  contents.addEvidence(bytes)
  await writeFully(file, bytes, offset)
}

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
