// Merges a recording into what the lake holds of the same series: the spans of both are put together, the records of
// the dates that this touches are read back, and all of it is folded anew. So the files are those that one import of
// everything would have written, whatever came first.

import { SIDE_BID } from '../../shared/lob-v1.ts'
import { MS_PER_HOUR, addDays, utcDateOf } from '../../shared/utc-date.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { RunEnd } from '../feed/read-span.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import { passOnChanges } from '../lake/early-changes.ts'
import { passOnSnapshots } from '../lake/early-snapshots.ts'
import type { CarriedMarket, StatedStrand } from '../lake/lob-evidence.ts'
import { RECORDING_OVER, STRAND_OVER } from '../lake/market-fold.ts'
import type { MarketFoldState } from '../lake/market-fold.ts'
import type { SeriesStrands } from '../lake/series-consolidation.ts'
import type { SeriesRecording } from '../lake/series-recording.ts'
import { booksAtStart, startFolds } from './lake-dates.ts'
import { outlineLake, refuseOpaque } from './lake-outline.ts'
import type { LakeDate, LakeMergeOptions, LakeOutline } from './lake-outline.ts'
import { restoreRecords } from './lake-records.ts'
import { dateOf, dayOf, looseSpans } from './series-spans.ts'
import type { Covered, SeriesSpan } from './series-spans.ts'
import { assembleStrands } from './strand-assembly.ts'
import type { Strand } from './strand-chain.ts'
import { StrandDates } from './strand-dates.ts'

export class LakeMerge implements SeriesStrands {
  readonly isTold = false
  readonly hasBehind: boolean
  readonly #options: LakeMergeOptions
  readonly #recording: SeriesRecording
  readonly #hasNoLeg: boolean
  readonly #spans: SeriesSpan[]
  readonly #dates: ReadonlyMap<string, LakeDate>
  readonly #others: readonly LakeDate[]
  readonly #strands: readonly Strand[]
  readonly #strandOf: number[] = []
  readonly #placeOf: number[] = []
  readonly #inDates: StrandDates
  #startFolds: ReadonlyMap<string, MarketFoldState> = new Map()

  private constructor(
    options: LakeMergeOptions,
    recording: SeriesRecording,
    spans: SeriesSpan[],
    { dates, others }: LakeOutline,
  ) {
    this.#options = options
    this.#hasNoLeg = exchangeOf(options.source).hasNoLeg
    this.#recording = recording
    this.#spans = spans
    this.hasBehind = spans.some(({ behindNs }) => behindNs !== undefined)
    this.#dates = dates
    this.#others = others
    this.#strands = assembleStrands(spans, options.ledger.endsWith(options.spans))
    this.#inDates = new StrandDates(spans, this.#strands)
    for (const [number, strand] of this.#strands.entries()) {
      for (const [place, span] of strand.spans.entries()) {
        this.#strandOf[span] = number
        this.#placeOf[span] = place
      }
    }
  }

  /** Prepares the folding of a series; undefined when the recording does not touch it. */
  static async prepare(
    options: LakeMergeOptions,
    recording: SeriesRecording,
  ): Promise<LakeMerge | undefined> {
    const spans = looseSpans(options.spans, recording.series)
    const outline = await outlineLake(options, recording, spans)
    const merge = new LakeMerge(options, recording, spans, outline)
    const touched = merge.#touchedDates()
    if (touched.length === 0) return undefined
    refuseOpaque(outline, touched, options, recording)
    await merge.#load(touched)
    merge.#endStrands()
    if (merge.hasBehind) passOnSnapshots(recording, merge, [...recording.hours.keys()])
    passOnChanges(recording, merge)
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

  behindIn(hour: number): (strand: number) => bigint {
    const date = utcDateOf(hour * MS_PER_HOUR)
    return (strand) => this.#inDates.behindNs(strand, date)
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
