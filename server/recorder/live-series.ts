// The order-book file of one series while its date is still being recorded. Closed hours and portions of the open one lie
// encoded in a part file (date-part.ts): a portion is encoded once when it is large enough, and the rows after the last portion
// are encoded again at each publication. So a publication costs one portion at most, for an hour of any size. When the hour
// closes, all of it is written sorted, and the finished file has the same bytes as a fold of the raw segments.

import { MS_PER_HOUR, NS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import type { SpilledEvents } from '../lake/event-spill.ts'
import { writeHour } from '../lake/hour-fold.ts'
import { LobFileContents } from '../lake/lob-file-contents.ts'
import type { LobRowGroup } from '../lake/lob-row-group.ts'
import type { MarketFold } from '../lake/market-fold.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { DatePart } from './date-part.ts'
import { DatePublication } from './date-publication.ts'
import type { DateEnd, DatePublicationOptions } from './date-publication.ts'
import type { LiveDate } from './live-date.ts'
import { LiveMarkets, inNextDate } from './live-markets.ts'
import { partPathOf, writeGroup } from './part-file.ts'
import type { OpenFile } from './part-file.ts'

/** A series between two hours, as plain data. */
export type LiveSeriesState = ReturnType<LiveSeries['state']>

export interface LiveSeriesOptions extends DatePublicationOptions {
  /** Shared by all series: one is written at a time. */
  readonly group: LobRowGroup
  readonly portionRows: number
  /** The chains of a date. */
  readonly dateOf: (date: string) => LiveDate
  /** Whether others record the date too. */
  readonly isShared: (date: string) => boolean
}

/** An hour since its last portion. */
interface HourPart {
  readonly events: SpilledEvents | undefined
  /** False if a portion has them. */
  readonly hasKeyframes: boolean
}

export class LiveSeries {
  readonly series: string
  readonly #options: LiveSeriesOptions
  readonly #publication: DatePublication
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
    this.#publication = new DatePublication(series, options)
    this.#hour = hour
    this.#date = utcDateOf(hour * MS_PER_HOUR)
    this.#markets = new LiveMarkets(series, options, state)
    this.#part = new DatePart(this.#partPath, state)
    this.#isChanged = state !== undefined
  }

  get recording(): SeriesRecording {
    return this.#markets.recording
  }

  /** Events or coverage since the last publication are not yet in the lake. */
  markChanged(): void {
    this.#isChanged = true
  }

  /** Notices that the recording continues, with or without events. */
  noticeCoverage(): void {
    const coveredTo = this.#options.dateOf(this.#date).coverageOf(this.series)?.to ?? 0n
    if (coveredTo > this.#coveredTo) this.#isChanged = true
    this.#coveredTo = coveredTo
  }

  /** Markets whose book was unknown since a gap when the date was last published. */
  get gappedMarkets(): readonly string[] {
    return this.#gapped
  }

  state() {
    return { series: this.series, ...this.#markets.state(), ...this.#part.state() }
  }

  /** Cuts the part file back to the closed hours. False if the file is missing or too short. */
  restorePart(): boolean {
    return this.#part.restore()
  }

  /** Publishes the date as far as it is recorded, and the next one if it has begun. Cheap when nothing has changed. */
  async publish(): Promise<void> {
    if (!this.#isChanged) return
    this.#isChanged = false
    await this.#encode()
    await this.#publishFile({ isForGood: false, isDateOver: false })
  }

  /**
   * Closes the open hour: writes its rows for good, reads the file back, publishes it, and opens the next hour. At the end of a
   * date, `finishedPart` is its part file, which can be removed when the checkpoint is saved.
   */
  async closeHour(): Promise<{ readonly finishedPart: string | undefined }> {
    const hour = this.#hour
    this.#markets.grow()
    const { recording, startFolds } = this.#markets
    const hasRows = this.#hasRows(hour, startFolds)
    this.#part.cutPortions()
    if (hasRows) await this.#part.append((file) => this.#writeHour(file, hour, startFolds))
    this.#part.close()
    recording.dropHour(hour)
    this.#markets.startHour()
    const isDateOver = utcDateOf((hour + 1) * MS_PER_HOUR) !== this.#date
    // Events that are already there belong to the next hour: the file is whole with them or without.
    this.#hour = hour + 1
    if (hasRows || (isDateOver && this.#part.hasClosedRows))
      await this.#publishFile({ isForGood: true, isDateOver })
    if (!isDateOver) return { finishedPart: undefined }
    await this.#publication.end(this.#date)
    const finishedPart = this.#part.path
    const { links } = this.#options.dateOf(this.#date)
    this.#date = utcDateOf(this.#hour * MS_PER_HOUR)
    this.#part = new DatePart(this.#partPath)
    this.#markets.startDate(links)
    this.#isChanged = true
    return { finishedPart }
  }

  /** Encodes the rows since the last portion, if they are enough for one. */
  async #encode(): Promise<void> {
    const spill = this.recording.hours.get(this.#hour)
    const { encodedRecords } = this.#part
    if (spill === undefined || spill.rows - encodedRecords < this.#options.portionRows) return
    this.#markets.grow()
    await this.#part.append(async (file) => {
      const portion = { events: spill.since(encodedRecords), hasKeyframes: encodedRecords === 0 }
      file.contents.startPortion()
      await this.#writeHour(file, this.#hour, this.#markets.portionFolds, portion)
    })
    this.#part.encodedRecords = spill.rows
  }

  /** Publishes the date, and the next one if it has messages already, unless another process holds the lock of the series. */
  async #publishFile(ends: Pick<DateEnd, 'isForGood' | 'isDateOver'>): Promise<void> {
    const isShared = this.#options.isShared(this.#date)
    const publish = async (lost?: AbortSignal): Promise<void> => {
      const end = { ...ends, isShared, lost }
      const { isPublished, folds } = await this.#publishDate(end)
      // An earlier process has published more: publish when as much of the log has been read.
      if (!isPublished) this.#isChanged = true
      else if (!end.isForGood) await this.#publishNextDate(folds, end)
    }
    if (isShared) await publish()
    // The log continues. The rest is published when the other process has finished.
    else if (!(await this.#publication.alone(ends.isDateOver, publish))) this.#isChanged = true
  }

  /** The date of the open hour, with what has come of later hours. The folds are those at the end of the open hour. */
  async #publishDate(end: DateEnd): Promise<{ readonly isPublished: boolean; readonly folds: MarketFold[] }> {
    this.#markets.grow()
    const folds = this.#markets.portionFolds.map((fold) => fold.copy())
    const encoded = this.#part.copy()
    const { encodedRecords } = this.#part
    const rest = this.recording.hours.get(this.#hour)?.since(encodedRecords)
    const isOpen = utcDateOf(this.#hour * MS_PER_HOUR) === this.#date
    const isFirst = encodedRecords === 0
    const hasRows = isOpen && (!isFirst || this.#hasRows(this.#hour, folds))
    const laterHours = isOpen ? this.#hoursAfter(this.#hour) : []
    let isPublished = true
    if (hasRows || encoded.hasRows || laterHours.some((hour) => this.recording.hours.has(hour))) {
      isPublished = await this.#publication.publish(
        this.#options.dateOf(this.#date),
        encoded,
        end,
        async (file) => {
          if (hasRows) {
            encoded.startPortion()
            await this.#writeHour(file, this.#hour, folds, { events: rest, hasKeyframes: isFirst })
          }
          for (const hour of laterHours)
            if (this.#hasRows(hour, folds)) await this.#writeHour(file, hour, folds)
        },
      )
    }
    this.#gapped = this.recording.marketIds().filter((_, index) => folds[index]!.isGapped)
    return { isPublished, folds }
  }

  /** The hours of the date after `hour`: the next one, and all up to the last of which something is known already. */
  #hoursAfter(hour: number): number[] {
    const isOfDate = (other: number): boolean => utcDateOf(other * MS_PER_HOUR) === this.#date
    const last = Math.max(hour + 1, ...[...this.recording.hours.keys()].filter(isOfDate))
    return Array.from({ length: last - hour }, (_, index) => hour + 1 + index).filter(isOfDate)
  }

  /** Publishes the next date while the open hour still belongs to this one. */
  async #publishNextDate(folds: readonly MarketFold[], end: DateEnd): Promise<void> {
    const next = this.#hour + 1
    const date = utcDateOf(next * MS_PER_HOUR)
    if (date === this.#date || !this.recording.hours.has(next) || this.#options.isShared(date)) return
    const { links } = this.#options.dateOf(this.#date)
    const carried = folds.map((fold) => inNextDate(fold, links))
    await this.#publication.publish(this.#options.dateOf(date), new LobFileContents(), end, (opened) =>
      this.#writeHour(opened, next, carried),
    )
  }

  /** Whether an hour that begins with these books has rows: something happened, or a book was watched. */
  #hasRows(hour: number, folds: readonly MarketFold[]): boolean {
    if (this.recording.hours.has(hour)) return true
    const coveredTo = this.#options.dateOf(utcDateOf(hour * MS_PER_HOUR)).coverageOf(this.series)?.to
    const isWatched = coveredTo !== undefined && coveredTo >= BigInt(hour) * NS_PER_HOUR
    return isWatched && folds.some((fold) => fold.isKnown)
  }

  /**
   * Writes an hour, or the portion of it that `some` has. `folds` are the markets at its start, by index; writing turns them into
   * those at its end.
   */
  async #writeHour(
    file: OpenFile,
    hour: number,
    folds: readonly MarketFold[],
    some: Partial<HourPart> = {},
  ): Promise<void> {
    const { recording } = this
    const { group, dateOf } = this.#options
    const { events = recording.hours.get(hour), hasKeyframes = true } = some
    const date = dateOf(utcDateOf(hour * MS_PER_HOUR))
    group.clear()
    const markets = { ids: recording.marketIds(), order: recording.marketOrder(), folds }
    const write = (rows: LobRowGroup): Promise<void> => writeGroup(file, rows)
    const isInverted = (chain: number): boolean => date.isInverted(chain)
    await writeHour(hour, events, hasKeyframes, markets, { group, write, isInverted })
  }

  get #partPath(): string {
    return partPathOf(this.#options, this.series, this.#date)
  }
}
