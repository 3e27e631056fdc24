// Merges a recording into what the lake holds of the same series: the spans of both are put together, the records of
// the dates that this touches are read back, and all of it is folded anew. So the files are those that one import of
// everything would have written, whatever came first.

import { lobFilePath } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { SIDE_BID } from '../../shared/lob-v1.ts'
import { MS_PER_HOUR, addDays, utcDateOf } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { CarriedMarket, StatedStrand } from '../lake/lob-evidence.ts'
import { RECORDING_OVER, STRAND_OVER } from '../lake/market-fold.ts'
import type { MarketFoldState } from '../lake/market-fold.ts'
import type { SeriesStrands } from '../lake/series-consolidation.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import type { FeedLedger } from './feed-ledger.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import type { RunEnd } from '../feed/read-span.ts'
import { outlineOfFile, restoreRecords } from './lake-records.ts'
import type { LakeFile } from './lake-records.ts'
import { linkSpans } from './span-links.ts'
import { OpaqueFileError, booksAtStart, lakeDates, startFolds } from './lake-dates.ts'
import { NO_MARKETS, dateOf, datesOf, dayOf, isSilent, looseSpans } from './series-spans.ts'
import type { Covered, SeriesSpan } from './series-spans.ts'
import { assembleStrands } from './strand-assembly.ts'
import type { Strand } from './strand-chain.ts'
import { StrandDates } from './strand-dates.ts'
import { lastSpanOf, strandParts } from './strand-parts.ts'
import type { OutlinedFile } from './strand-parts.ts'

export interface LakeMergeOptions {
  readonly lake: string
  readonly source: LobSource
  readonly spans: FeedSpans
  /** Dates for which the recording has events are written from it alone. */
  readonly replace: boolean
  /** What earlier imports have heard, of all series. */
  readonly ledger: FeedLedger
  /** Files of the series that lie elsewhere, of one date: they are merged into the lake's. */
  readonly others?: readonly LakeFile[]
}

/** A date's file in the lake, or one of `others`, and where its strands stand among the spans. */
interface LakeDate extends OutlinedFile {
  /** By strand of the file: its parts' spans, in feed order. */
  readonly parts: readonly (readonly number[])[]
  isLoaded: boolean
}

export class LakeMerge implements SeriesStrands {
  readonly isTold = false
  readonly #options: LakeMergeOptions
  readonly #recording: SeriesRecording
  readonly #hasNoLeg: boolean
  readonly #spans: SeriesSpan[]
  readonly #dates = new Map<string, LakeDate>()
  readonly #others: LakeDate[] = []
  #strands: readonly Strand[] = []
  readonly #strandOf: number[] = []
  readonly #placeOf: number[] = []
  #inDates: StrandDates
  #startFolds: ReadonlyMap<string, MarketFoldState> = new Map()
  /** Dates in the lake whose files keep no evidence. */
  readonly #opaque: string[] = []

  private constructor(options: LakeMergeOptions, recording: SeriesRecording) {
    this.#options = options
    this.#hasNoLeg = exchangeOf(options.source).hasNoLeg
    this.#recording = recording
    const { series } = recording
    this.#spans = looseSpans(options.spans, series)
    this.#inDates = new StrandDates(this.#spans, [])
  }

  /** Prepares the folding of a series; undefined when the recording does not touch it. */
  static async prepare(
    options: LakeMergeOptions,
    recording: SeriesRecording,
  ): Promise<LakeMerge | undefined> {
    const merge = new LakeMerge(options, recording)
    await merge.#outlineLake()
    merge.#assemble()
    const touched = merge.#touchedDates()
    if (touched.length === 0) return undefined
    merge.#refuseOpaque(touched)
    await merge.#load(touched)
    merge.#endStrands()
    return merge
  }

  // What the series' consolidation asks.

  get startFolds(): ReadonlyMap<string, MarketFoldState> {
    return this.#startFolds
  }

  strandOf(span: number): number {
    return this.#strandOf[span]!
  }

  placeOf(span: number): number {
    return this.#placeOf[span]!
  }

  isNumbered(strand: number): boolean {
    return this.#strands[strand]!.sid !== null
  }

  nameOf(span: number): string {
    return this.#spans[span]!.name
  }

  isInverted(span: number): boolean {
    return this.#hasNoLeg && this.#strands[this.strandOf(span)]!.isTurned !== true
  }

  /** Why a strand ended. */
  endOf(strand: number): RunEnd {
    return this.#strands[strand]!.end ?? 'end of file'
  }

  coverageOf(date: string): Covered | undefined {
    return this.#inDates.coverageOf(date)
  }

  outlinesOf(date: string, used: readonly number[]): readonly (StatedStrand & FeedSpan)[] {
    return this.#inDates.outlinesOf(date, used)
  }

  async isSettled(date: string, carried: readonly CarriedMarket[]): Promise<boolean> {
    const lakeDate = this.#dates.get(date)
    if (lakeDate === undefined || lakeDate.isLoaded) return false
    const own = await this.#booksAtStart(lakeDate)
    if (JSON.stringify(own) === JSON.stringify(carried)) return true
    await this.#loadDate(lakeDate)
    this.#endStrands(date)
    this.#visitAfter(date)
    return false
  }

  // The lake.

  async #outlineLake(): Promise<void> {
    const { lake, source, replace, others = [] } = this.#options
    const { series } = this.#recording
    const first = datesOf(this.#options.spans)[0] ?? others[0]?.date
    if (first === undefined) return
    const files = lakeDates(lake, source, series)
      .filter((date) => date >= this.#firstRead(first) && !(replace && this.#hasEvents(date)))
      .map((date): LakeFile => ({ date, path: lobFilePath(lake, source, series, date) }))
    const outlines: OutlinedFile[] = []
    for (const { date, path } of [...files, ...others]) {
      const outline = await outlineOfFile(path)
      if (outline === undefined) this.#opaque.push(date)
      else outlines.push({ date, path, outline })
    }
    for (const { date, path, outline } of outlines) {
      const parts = outline.strands.map((strand) => this.#addLakeSpans(strand, { date, path, outline }))
      const lakeDate = { date, path, outline, parts, isLoaded: false }
      if (others.some((other) => other.path === path)) this.#others.push(lakeDate)
      else this.#dates.set(date, lakeDate)
    }
    // What is replaced proves nothing of what replaces it.
    const hasFile = (date: string): boolean => this.#dates.has(date) || (replace && this.#hasEvents(date))
    for (const span of this.#options.ledger.spansFor(series, first, hasFile))
      this.#spans.push({ ...span, ownIds: NO_MARKETS, fromTs: undefined })
    linkSpans(this.#spans)
  }

  /** Files say themselves what they begin with: only a recording may go on with the date before. */
  #firstRead(first: string): string {
    return this.#options.others === undefined ? addDays(first, -1) : first
  }

  /** Adds a strand's parts and returns their numbers. */
  #addLakeSpans(strand: StatedStrand & FeedSpan, file: OutlinedFile): number[] {
    const heard = this.#options.ledger.partsOf(file.date, strand)
    // That it went on in silence follows from what it is put together of.
    const isHeardOf = heard.length > 0 || this.#options.others !== undefined
    const before = !isHeardOf && isSilent(strand) ? lastSpanOf(this.#spans, strand) : undefined
    if (before !== undefined) return [before]
    return strandParts(strand, heard, file).map((part) => this.#spans.push(part) - 1)
  }

  #assemble(): void {
    this.#strands = assembleStrands(this.#spans, this.#options.spans.endsBefore)
    this.#inDates = new StrandDates(this.#spans, this.#strands)
    for (const [number, { spans }] of this.#strands.entries()) {
      for (const [place, span] of spans.entries()) {
        this.#strandOf[span] = number
        this.#placeOf[span] = place
      }
    }
  }

  /** Dates that the recording adds something to. */
  #touchedDates(): string[] {
    const dates = this.#inDates.touchedBy(this.#options.spans.list.size)
    for (const hour of this.#recording.hours.keys()) dates.add(utcDateOf(hour * MS_PER_HOUR))
    for (const { date } of this.#others) dates.add(date)
    for (const lakeDate of this.#dates.values()) if (!this.#isAsWritten(lakeDate)) dates.add(lakeDate.date)
    return [...dates].toSorted()
  }

  /** Whether a date's strands are still those of its file, heard of as long. */
  #isAsWritten({ date, parts, outline }: LakeDate): boolean {
    const strands = parts.map((list) => new Set(list.map((span) => this.#strandOf[span]!)))
    return (
      strands.every(({ size }) => size === 1) &&
      new Set(strands.flatMap((set) => [...set])).size === parts.length &&
      outline.strands.every(({ lastTs, isEnded }, place) => {
        const last = this.#inDates.lastOf(this.#strandOf[parts[place]![0]!]!, date)
        return last.lastTs === lastTs && last.isEnded === isEnded
      })
    )
  }

  #refuseOpaque(touched: readonly string[]): void {
    const inTheWay = this.#opaque.filter((date) => touched.includes(date) && this.#hasEvents(date))
    if (inTheWay.length === 0 || this.#options.replace) return
    throw new OpaqueFileError(inTheWay.map((date) => this.#pathOf(date)))
  }

  #pathOf(date: string): string {
    return lobFilePath(this.#options.lake, this.#options.source, this.#recording.series, date)
  }

  #hasEvents(date: string): boolean {
    const first = Date.parse(`${date}T00:00:00Z`) / MS_PER_HOUR
    for (const hour of this.#recording.hours.keys()) if (hour >= first && hour < first + 24) return true
    return false
  }

  /** Loads the touched dates, and the one before them, whose books go on. */
  async #load(touched: readonly string[]): Promise<void> {
    const first = touched[0]!
    const before = this.#dates.get(addDays(first, -1))
    const start = before ?? this.#dates.get(first)
    await this.#startFrom(start === undefined ? this.#others : [start, ...this.#others])
    for (const other of this.#others) await this.#loadDate(other)
    for (const date of before === undefined ? touched : [before.date, ...touched]) {
      const lakeDate = this.#dates.get(date)
      if (lakeDate !== undefined && !lakeDate.isLoaded) await this.#loadDate(lakeDate)
    }
    // Dates between touched ones are part of the same course.
    for (const lakeDate of this.#dates.values()) {
      if (!lakeDate.isLoaded && lakeDate.date > first && lakeDate.date < touched.at(-1)!)
        await this.#loadDate(lakeDate)
    }
    for (const date of touched) {
      const covered = this.coverageOf(date)
      if (covered === undefined) continue
      this.#recording.cover(covered.from)
      this.#recording.cover(covered.to)
    }
    this.#visitAfter(touched.at(-1)!)
  }

  /** The date after may begin with other books now. */
  #visitAfter(date: string): void {
    const next = addDays(date, 1)
    if (this.#dates.has(next)) this.#recording.visit(dayOf(next).start)
  }

  /** The books with which the first date begins. */
  async #startFrom(files: readonly LakeDate[]): Promise<void> {
    const books: Awaited<ReturnType<typeof booksAtStart>>[] = []
    for (const file of files) books.push(await this.#booksAtStart(file))
    this.#startFolds = startFolds(books)
  }

  async #booksAtStart(lakeDate: LakeDate) {
    return await booksAtStart(
      lakeDate,
      lakeDate.outline,
      (strand) => this.#strandOf[lakeDate.parts[strand]![0]!]!,
    )
  }

  async #loadDate(lakeDate: LakeDate): Promise<void> {
    lakeDate.isLoaded = true
    this.#inDates.forget()
    // Its records tell since when a strand speaks of the series, the date before whether it did so already.
    const hasDateBefore = this.#dates.has(addDays(lakeDate.date, -1))
    for (const number of lakeDate.parts.flat()) {
      const span = this.#spans[number]!
      if (span.date !== lakeDate.date) continue
      if (!hasDateBefore && span.fromTs === dayOf(lakeDate.date).start) continue
      span.fromTs = undefined
      span.spokenIds = new Set()
    }
    await restoreRecords(lakeDate, this.#options.source, this.#recording, (record) => {
      const index = this.#partOf(lakeDate.parts[record.strand]!, record)
      const span = this.#spans[index]!
      span.spokenIds?.add(record.market)
      return [index, span]
    })
    this.#inDates.forget()
    const covered = this.coverageOf(lakeDate.date)
    if (covered === undefined) return
    this.#recording.cover(covered.from)
    this.#recording.cover(covered.to)
  }

  #partOf(
    parts: readonly number[],
    { seq, recvTs }: { readonly seq: bigint; readonly recvTs: bigint },
  ): number {
    if (parts.length === 1) return parts[0]!
    const isReached = ({ sid, firstSeq, firstRecvTs }: FeedSpan): boolean =>
      sid === null ? firstRecvTs <= recvTs : firstSeq <= Number(seq)
    return parts.findLast((part) => isReached(this.#spans[part]!)) ?? parts[0]!
  }

  /** Says where strands end, in `date` or in every date that is loaded. */
  #endStrands(date?: string): void {
    for (const [number, strand] of this.#strands.entries()) {
      if (this.#inDates.fromTs(number) === undefined) continue
      const endDate = dateOf(strand.lastTs)
      if (date === undefined ? !this.#isFolded(endDate) : endDate !== date) continue
      const isOver = strand.isEnded || strand.lastTs < this.coverageOf(endDate)!.to
      // What is known to have gone on ends with its date: no row of the next one says so.
      const isAtMidnight = !isOver && strand.lastTs === dayOf(endDate).end
      const span = strand.spans.at(-1)!
      for (const marketId of this.#inDates.marketsOf(strand)) {
        this.#recording.restore({
          marketId,
          ts: isAtMidnight ? strand.lastTs : strand.lastTs + 1n,
          recvTs: strand.lastRecvTs,
          seq: BigInt(strand.lastSeq),
          event: isOver ? STRAND_OVER : RECORDING_OVER,
          side: SIDE_BID,
          price: 0,
          qty: 0,
          span,
        })
      }
    }
  }

  #isFolded(date: string): boolean {
    const lakeDate = this.#dates.get(date)
    return lakeDate === undefined || lakeDate.isLoaded
  }
}
