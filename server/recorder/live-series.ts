// The order-book file of one series while its date is still being recorded. Closed hours lie encoded in a part file, as
// they will stand in the finished file. The open hour follows as slices, each sorted by market in itself: a slice is
// encoded once when it is large enough, and what came after the last one is encoded anew at each publication. When the
// hour closes its slices are cut off and the whole hour is written sorted. So a publication costs one slice at most,
// whatever the hour holds, and the finished file has the bytes that an import of the same messages gives. Where the lake
// has something of the date that the recorder has not heard, both become one file, and the recorder goes on from that.

import { constants, existsSync, mkdirSync, statSync, truncateSync } from 'node:fs'
import { copyFile, open, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { CONSOLIDATE_ROWS_MAX } from '../../shared/limits.ts'
import { MS_PER_HOUR, NS_PER_HOUR, NS_PER_MS, utcDateOf } from '../../shared/utc-date.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import { writeFully } from '../lake/durable-file.ts'
import type { SpilledEvents } from '../lake/event-spill.ts'
import { HourConsolidation } from '../lake/hour-consolidation.ts'
import { LobFileContents } from '../lake/lob-file-contents.ts'
import type { LobFileContentsState } from '../lake/lob-file-contents.ts'
import { MERGE_WAIT_MS_MAX, MergeBusy, withSeries } from '../import/merge-lock.ts'
import { verifyLobFile } from '../lake/lob-file-verify.ts'
import { HourEvidence, carriedMarkets, encodeAnchors } from '../lake/lob-evidence.ts'
import type { CarriedMarket } from '../lake/lob-evidence.ts'
import { MarketFold } from '../lake/market-fold.ts'
import type { MarketFoldState } from '../lake/market-fold.ts'
import { StrandNumbers } from '../lake/strand-numbers.ts'
import type { LobRowGroup } from '../lake/lob-row-group.ts'
import { SeriesRecording } from '../lake/series-recording.ts'
import type { SeriesRecordingState } from '../lake/series-recording.ts'
import { removeStaleTemporaries, temporaryPath } from '../lake/temporary-file.ts'
import { DatePublication } from './date-publication.ts'
import type { DateEnds, DatePublicationOptions, PublicationOutcome } from './date-publication.ts'
import { restoreDate } from './date-restart.ts'
import { LiveStrands } from './live-strands.ts'
import type { LiveStrandsState } from './live-strands.ts'
import { createPart, partPathOf, writeEvidence, writeGroup } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

const HOURS_PER_DAY = 24
/** So much later another recorder's words may have come, while it is listened to as well; more is a wrong clock. */
const BEHIND_NS_USUAL = 60_000_000_000n
/** Another that merges has the series for a moment; longer is worth a word. */
const BUSY_MS_USUAL = 60_000
/** Strands that ended before so many hours are told no more. */
const HOURS_REMEMBERED = 24

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
  /** What it went on from; undefined where it began anew. */
  readonly origin?: LiveStrandsState | undefined
}

/** `workDirectory` is also where part files and spilled events go. */
export interface LiveSeriesOptions extends DatePublicationOptions {
  /** Shared by all series: one is written at a time. */
  readonly group: LobRowGroup
  readonly sliceRows: number
  readonly spans: FeedSpans
  /** The part file is about to be written anew: no state that was put away fits it any more. */
  readonly onRestart: () => Promise<void>
}

export class LiveSeries {
  readonly series: string
  readonly #options: LiveSeriesOptions
  readonly #strands: LiveStrands
  readonly #publication: DatePublication
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
  /** Since when another writes to the series' files. */
  #busySinceMs: number | undefined

  constructor(series: string, hour: number, options: LiveSeriesOptions, state?: LiveSeriesState) {
    this.series = series
    this.#options = options
    this.#strands = new LiveStrands(options.source, series, options.spans, state?.origin)
    this.#publication = new DatePublication(series, options)
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
    const coveredTo = this.#strands.lastTs ?? 0n
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
      origin: this.#strands.state(),
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
    await this.#publishFile({})
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
    if (hasRows || (isDateEnd && this.#closed.hasRows)) {
      await this.#publishFile({ isForGood: true, isDateOver: isDateEnd })
    }
    if (!isDateEnd) return { finishedPart: undefined }
    // What killed recorders were writing beside it.
    const { lake, source } = this.#options
    await removeStaleTemporaries(dirname(lobFilePath(lake, source, this.series, this.#date)))
    const finishedPart = this.partPath
    this.#enterDate()
    return { finishedPart }
  }

  #enterDate(): void {
    this.#publication.forget(this.#date)
    this.#strands.forgetBefore(BigInt(this.#hour - HOURS_REMEMBERED) * NS_PER_HOUR)
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

  /**
   * Publishes the date, unless another writes to the series' files now: then it is tried again. A date that is over has no
   * other time, and waits.
   */
  async #publishFile(ends: DateEnds): Promise<void> {
    const { lake, source } = this.#options
    const waitMs = ends.isDateOver === true ? MERGE_WAIT_MS_MAX : 0
    const onWait = (owner: string): void => this.#publication.tellBusy(this.#date, owner)
    try {
      const place = { lake, source, series: this.series }
      await withSeries(place, { waitMs, onWait }, (lost) => this.#publishAlone({ ...ends, lost }))
    } catch (error) {
      if (!(error instanceof MergeBusy) || ends.isDateOver === true) throw error
      // The log goes on: what is not in the lake now is there when the other has ended.
      this.#isChanged = true
      this.#busySinceMs ??= performance.now()
      if (performance.now() - this.#busySinceMs > BUSY_MS_USUAL) onWait(error.owner)
      return
    }
    this.#busySinceMs = undefined
  }

  /**
   * Publishes the date, and the next one where messages of that have come already. What the lake has besides is merged
   * with first; then the recorder's own file, which goes on from that, follows at once.
   */
  async #publishAlone(ends: DateEnds): Promise<void> {
    let { outcome, folds } = await this.#publishDate(ends)
    if (outcome === 'merged') {
      await this.#goOnFromLake()
      ;({ outcome, folds } = await this.#publishDate(ends))
      if (outcome === 'merged') await this.#goOnFromLake()
    }
    if (outcome === 'published' && ends.isForGood !== true) await this.#publishNextDate(folds, ends)
  }

  /** The date of the open hour, with what has come of later hours. The folds are those at the end of the open hour. */
  async #publishDate(ends: DateEnds): Promise<PublishedDate> {
    this.#growFolds()
    const folds = this.#sliceFolds.map((fold) => fold.copy())
    const behindNs = ends.isDateOver === true ? 0n : this.#strands.behindFileNs
    if (behindNs > 0n) {
      if (behindNs > BEHIND_NS_USUAL) this.#publication.tellAhead(this.#date, behindNs)
      // The lake's file ends what the recorder says where it was merged; this one would go on with it too early.
      this.#isChanged = true
      return { outcome: 'kept back', folds }
    }
    const contents = new LobFileContents(this.#sealed.state())
    const numbers = new StrandNumbers(this.#sealedNumbers.strands)
    const rest = this.#recording.hours.get(this.#hour)?.since(this.#sealedRecords)
    const isOpen = utcDateOf(this.#hour * MS_PER_HOUR) === this.#date
    const isFirst = this.#sealedRecords === 0
    const hasRows = isOpen && (!isFirst || this.#hasRows(this.#hour, folds))
    const laterHours = isOpen ? this.#hoursAfter(this.#hour) : []
    let outcome: PublicationOutcome = 'published'
    if (hasRows || contents.hasRows || laterHours.some((hour) => this.#recording.hours.has(hour))) {
      outcome = await this.#writeLakeFile(this.#date, { contents, numbers }, ends, async (file) => {
        if (hasRows) {
          contents.startSlice()
          await this.#writeHour(this.#hour, rest, folds, isFirst, file)
        }
        for (const hour of laterHours) await this.#writeNext(hour, folds, file)
      })
      // An earlier process has published more: this one follows when it has read as much.
      if (outcome === 'kept back' && this.#options.isBehind()) this.#isChanged = true
    }
    this.#gapped = this.#recording.marketIds().filter((_, index) => folds[index]!.isGapped)
    return { outcome, folds }
  }

  /** The hours of the date after `hour`: the next one, and all up to the last of which something is known already. */
  #hoursAfter(hour: number): number[] {
    const isOfDate = (other: number): boolean => utcDateOf(other * MS_PER_HOUR) === this.#date
    const last = Math.max(hour + 1, ...[...this.#recording.hours.keys()].filter(isOfDate))
    return Array.from({ length: last - hour }, (_, index) => hour + 1 + index).filter(isOfDate)
  }

  /** The next date before it is entered; where somebody else has written it, it is published when it is. */
  async #publishNextDate(folds: MarketFold[], { lost }: DateEnds): Promise<void> {
    const next = this.#hour + 1
    const date = utcDateOf(next * MS_PER_HOUR)
    if (date === this.#date || !this.#hasRows(next, folds)) return
    if (await this.#publication.isForeign(date)) return
    const file = { contents: new LobFileContents(), numbers: new StrandNumbers() }
    for (const fold of folds) fold.startDate()
    const carried = carriedMarkets(this.#recording.marketIds(), this.#recording.marketOrder(), folds)
    await this.#writeLakeFile(date, file, { lost }, (opened) => this.#writeNext(next, folds, opened, carried))
  }

  /** Begins the date again with all that the lake's file holds of it, which is all that has been published too. */
  async #goOnFromLake(): Promise<void> {
    await this.#options.onRestart()
    const { lake, source } = this.#options
    const dayStart = Date.parse(`${this.#date}T00:00:00Z`) / MS_PER_HOUR
    const state = this.#recording.state(dayStart + HOURS_PER_DAY)
    for (const hour of this.#recording.hours.values()) hour.drop()
    // What the next date begins with has been published by nobody yet, but for the ends of strands in another file.
    const events = state.events.filter(({ span = 0 }) => span >= 0)
    const recording = this.#newRecording({ ...state, events })
    this.#recording = recording
    const date = this.#date
    this.#startFolds = await restoreDate({ lake, source, date, recording, strands: this.#strands })
    this.#carried = carriedMarkets(recording.marketIds(), recording.marketOrder(), this.#startFolds)
    this.#sealed = new LobFileContents()
    this.#sealedNumbers = new StrandNumbers()
    await this.#appendPart(async (file) => {
      for (let hour = dayStart; hour < Math.min(this.#hour, dayStart + HOURS_PER_DAY); hour++) {
        if (this.#hasRows(hour, this.#startFolds))
          await this.#writeHour(hour, recording.hours.get(hour), this.#startFolds, true, file)
        recording.dropHour(hour)
      }
    })
    this.#closed = new LobFileContents(this.#sealed.state())
    this.#closedNumbers = new StrandNumbers(this.#sealedNumbers.strands)
    this.#sealedRecords = 0
    this.#sliceFolds = this.#startFolds.map((fold) => fold.copy())
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
    const coveredTo = this.#strands.lastTs
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
    const { group } = this.#options
    const strands = this.#strands
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
    createPart(this.partPath)
    const file = await open(this.partPath, 'r+')
    try {
      await file.truncate(this.#sealed.sizeBytes)
      await produce({ file, contents: this.#sealed, numbers: this.#sealedNumbers })
      await file.sync()
    } finally {
      await file.close()
    }
  }

  async #writeLakeFile(
    date: string,
    { contents, numbers }: Omit<OpenFile, 'file'>,
    ends: DateEnds,
    produce: (file: OpenFile) => Promise<void>,
  ): Promise<PublicationOutcome> {
    createPart(partPathOf(this.#options, this.series, date))
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
        if (!contents.hasRows) return 'published'
        const labels = this.#labels(date, numbers)
        await writeEvidence(file, contents, encodeAnchors(labels.strands))
        const footer = contents.footer(labels)
        await writeFully(file, footer.bytes, contents.sizeBytes)
        if (ends.isForGood === true) await file.sync()
      } finally {
        await file.close()
      }
      if (ends.isForGood === true) await verifyLobFile(temporary)
      return await this.#publication.publish(date, temporary, ends)
    } finally {
      await rm(temporary, { force: true })
    }
  }

  #labels(date: string, numbers: StrandNumbers) {
    const { source } = this.#options
    const { series } = this
    const dayStart = BigInt(Date.parse(`${date}T00:00:00Z`)) * NS_PER_MS
    const covered = this.#strands.coverageOf(dayStart) ?? { from: dayStart, to: dayStart }
    const outlines = this.#strands.outlinesOf(dayStart, numbers.strands)
    return { source, series, date, coversFrom: covered.from, coversTo: covered.to, strands: outlines }
  }
}

interface PublishedDate {
  readonly outcome: PublicationOutcome
  readonly folds: MarketFold[]
}
