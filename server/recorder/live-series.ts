// The order-book file of one series while its date is still being recorded. Closed hours and slices of the open one lie
// encoded in a part file (date-part.ts): a slice is encoded once when it is large enough, and what came after the last one
// is encoded anew at each publication. So a publication costs one slice at most, whatever the hour holds. When the hour
// closes the whole of it is written sorted, and the finished file has the bytes that an import of the same messages
// gives. Where the lake has something of the date that the recorder has not heard, both become one file, and the recorder
// goes on from that.

import { MS_PER_HOUR, NS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import { passOnSnapshots } from '../lake/early-snapshots.ts'
import { LobFileContents } from '../lake/lob-file-contents.ts'
import type { MarketFold } from '../lake/market-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { StrandNumbers } from '../lake/strand-numbers.ts'
import { DatePart } from './date-part.ts'
import type { DatePartState } from './date-part.ts'
import { DatePublication } from './date-publication.ts'
import type { DateEnds, PublicationOutcome } from './date-publication.ts'
import { restoreDate } from './date-restart.ts'
import { LiveFileWriter } from './live-file-writer.ts'
import type { LiveFileOptions, LiveHour } from './live-file-writer.ts'
import { LiveMarkets } from './live-markets.ts'
import type { LiveMarketsState } from './live-markets.ts'
import { LiveStrands } from './live-strands.ts'
import type { LiveStrandsState } from './live-strands.ts'
import { partPathOf } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

const HOURS_PER_DAY = 24
/** So much later another recorder's words may have come, while it is listened to as well; more is a wrong clock. */
const BEHIND_NS_USUAL = 60_000_000_000n
/** Strands that ended before so many hours are told no more. */
const HOURS_REMEMBERED = 24

/** A series between two hours, as plain data. */
export interface LiveSeriesState extends DatePartState, LiveMarketsState {
  readonly series: string
  /** What it went on from; undefined where it began anew. */
  readonly origin?: LiveStrandsState | undefined
}

/** `workDirectory` is also where part files and spilled events go. */
export interface LiveSeriesOptions extends LiveFileOptions {
  readonly sliceRows: number
  readonly spans: FeedSpans
  /** The part file is about to be written anew: no state that was put away fits it any more. */
  readonly onRestart: () => Promise<void>
}

interface PublishedDate {
  readonly outcome: PublicationOutcome
  readonly folds: MarketFold[]
}

export class LiveSeries {
  readonly series: string
  readonly #options: LiveSeriesOptions
  readonly #strands: LiveStrands
  readonly #publication: DatePublication
  readonly #writer: LiveFileWriter
  readonly #markets: LiveMarkets
  /** The hour (since the epoch) that is open, and the date that it belongs to. */
  #hour: number
  #date: string
  #part: DatePart
  #gapped: readonly string[] = []
  #coveredTo = 0n
  #isChanged: boolean

  constructor(series: string, hour: number, options: LiveSeriesOptions, state?: LiveSeriesState) {
    this.series = series
    this.#options = options
    this.#strands = new LiveStrands(options.source, series, options.spans, state?.origin)
    this.#publication = new DatePublication(series, options)
    this.#writer = new LiveFileWriter(series, options, this.#strands, this.#publication)
    this.#hour = hour
    this.#date = utcDateOf(hour * MS_PER_HOUR)
    this.#markets = new LiveMarkets(series, options, state)
    this.#part = new DatePart(this.#partPath, state)
    this.#isChanged = state !== undefined
  }

  get recording(): SeriesRecording {
    return this.#markets.recording
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
      ...this.#markets.state(),
      ...this.#part.state(),
      origin: this.#strands.state(),
    }
  }

  /** Cuts the part file back to the closed hours. False when it is not there as it was. */
  restorePart(): boolean {
    return this.#part.restore()
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
    this.#markets.grow()
    const { recording, startFolds } = this.#markets
    if (this.#strands.hasBehind) passOnSnapshots(recording, this.#strands, [hour])
    const hasRows = this.#hasRows(hour, startFolds)
    this.#part.cutSlices()
    if (hasRows) await this.#part.append((file) => this.#writeHour(file, hour, startFolds))
    this.#part.close()
    recording.dropHour(hour)
    this.#markets.startHour()
    const isDateEnd = utcDateOf((hour + 1) * MS_PER_HOUR) !== this.#date
    // Events that are already there belong to the next hour: the file is whole with them or without.
    this.#hour = hour + 1
    if (hasRows || (isDateEnd && this.#part.hasClosedRows)) {
      await this.#publishFile({ isForGood: true, isDateOver: isDateEnd })
    }
    if (!isDateEnd) return { finishedPart: undefined }
    await this.#publication.end(this.#date)
    const finishedPart = this.#part.path
    this.#enterDate()
    return { finishedPart }
  }

  #enterDate(): void {
    this.#strands.forgetBefore(BigInt(this.#hour - HOURS_REMEMBERED) * NS_PER_HOUR)
    this.#date = utcDateOf(this.#hour * MS_PER_HOUR)
    this.#part = new DatePart(this.#partPath)
    this.#markets.startDate()
    this.#isChanged = true
  }

  /** Encodes what has gathered since the last slice, if it is enough for one. */
  async #seal(): Promise<void> {
    const spill = this.recording.hours.get(this.#hour)
    const { sealedRecords } = this.#part
    if (spill === undefined || spill.rows - sealedRecords < this.#options.sliceRows) return
    this.#markets.grow()
    await this.#part.append(async (file) => {
      const slice = { events: spill.since(sealedRecords), hasKeyframes: sealedRecords === 0 }
      file.contents.startSlice()
      await this.#writeHour(file, this.#hour, this.#markets.sliceFolds, slice)
    })
    this.#part.sealedRecords = spill.rows
  }

  /** Publishes the date, unless another writes to the series' files now: then it is tried again. */
  async #publishFile(ends: DateEnds): Promise<void> {
    const publish = (lost: AbortSignal): Promise<void> => this.#publishAlone({ ...ends, lost })
    // The log goes on: what is not in the lake now is there when the other has ended.
    if (!(await this.#publication.alone(this.#date, ends, publish))) this.#isChanged = true
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
    this.#markets.grow()
    const folds = this.#markets.sliceFolds.map((fold) => fold.copy())
    const behindNs = ends.isDateOver === true ? 0n : this.#strands.behindFileNs
    if (behindNs > 0n) {
      if (behindNs > BEHIND_NS_USUAL) this.#publication.tellAhead(this.#date, behindNs)
      // The lake's file ends what the recorder says where it was merged; this one would go on with it too early.
      this.#isChanged = true
      return { outcome: 'kept back', folds }
    }
    const sealed = this.#part.copy()
    const { sealedRecords } = this.#part
    const rest = this.recording.hours.get(this.#hour)?.since(sealedRecords)
    const isOpen = utcDateOf(this.#hour * MS_PER_HOUR) === this.#date
    const isFirst = sealedRecords === 0
    const hasRows = isOpen && (!isFirst || this.#hasRows(this.#hour, folds))
    const laterHours = isOpen ? this.#hoursAfter(this.#hour) : []
    let outcome: PublicationOutcome = 'published'
    if (hasRows || sealed.contents.hasRows || laterHours.some((hour) => this.recording.hours.has(hour))) {
      outcome = await this.#writer.publish(this.#date, sealed, ends, async (file) => {
        if (hasRows) {
          sealed.contents.startSlice()
          await this.#writeHour(file, this.#hour, folds, { events: rest, hasKeyframes: isFirst })
        }
        for (const hour of laterHours)
          if (this.#hasRows(hour, folds)) await this.#writeHour(file, hour, folds)
      })
      // An earlier process has published more: this one follows when it has read as much.
      if (outcome === 'kept back' && this.#options.isBehind()) this.#isChanged = true
    }
    this.#gapped = this.recording.marketIds().filter((_, index) => folds[index]!.isGapped)
    return { outcome, folds }
  }

  /** The hours of the date after `hour`: the next one, and all up to the last of which something is known already. */
  #hoursAfter(hour: number): number[] {
    const isOfDate = (other: number): boolean => utcDateOf(other * MS_PER_HOUR) === this.#date
    const last = Math.max(hour + 1, ...[...this.recording.hours.keys()].filter(isOfDate))
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
    const carried = this.#markets.carriedFrom(folds)
    await this.#writer.publish(date, file, { lost }, (opened) =>
      this.#writeHour(opened, next, folds, { carried }),
    )
  }

  /** Begins the date again with all that the lake's file holds of it, which is all that has been published too. */
  async #goOnFromLake(): Promise<void> {
    await this.#options.onRestart()
    const { lake, source } = this.#options
    const dayStart = Date.parse(`${this.#date}T00:00:00Z`) / MS_PER_HOUR
    const state = this.recording.state(dayStart + HOURS_PER_DAY)
    // What the next date begins with has been published by nobody yet, but for the ends of strands in another file.
    const events = state.events.filter(({ span = 0 }) => span >= 0)
    const recording = this.#markets.readAgain({ ...state, events })
    const date = this.#date
    const folds = await restoreDate({ lake, source, date, recording, strands: this.#strands })
    this.#markets.beginWith(folds)
    this.#part.startAgain()
    await this.#part.append(async (file) => {
      for (let hour = dayStart; hour < Math.min(this.#hour, dayStart + HOURS_PER_DAY); hour++) {
        if (this.#hasRows(hour, folds)) await this.#writeHour(file, hour, folds)
        recording.dropHour(hour)
      }
    })
    this.#part.close()
    this.#markets.startHour()
  }

  /** Whether an hour that begins with these books has rows: something happened, or a book was watched. */
  #hasRows(hour: number, folds: readonly MarketFold[]): boolean {
    if (this.recording.hours.has(hour)) return true
    const coveredTo = this.#strands.lastTs
    const isWatched = coveredTo !== undefined && coveredTo >= BigInt(hour) * NS_PER_HOUR
    return isWatched && folds.some((fold) => fold.isKnown)
  }

  /** All of an hour, unless `some` says that it is a slice; of the open date, unless other books are carried into it. */
  async #writeHour(
    file: OpenFile,
    hour: number,
    folds: readonly MarketFold[],
    some: Partial<Pick<LiveHour, 'events' | 'hasKeyframes' | 'carried'>> = {},
  ): Promise<void> {
    const { recording } = this
    const { events = recording.hours.get(hour), hasKeyframes = true, carried = this.#markets.carried } = some
    await this.#writer.writeHour(file, { hour, recording, folds, events, hasKeyframes, carried })
  }

  get #partPath(): string {
    return partPathOf(this.#options, this.series, this.#date)
  }
}
