// The answer of a planned request: date by date, tick by tick, market by market, each row taken from the market's book
// at that tick. Books that the date's own file does not make known are replayed from the dates before it first.

import type { LobQuery } from '../../shared/lob-task.ts'
import { addDays, NS_PER_SECOND, utcDatesBetween } from '../../shared/utc-date.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import { EventSource } from './event-source.ts'
import { HOUR_NS } from './file-index.ts'
import type { FileOfDate, LakeFile } from './lake-file.ts'
import { MarketReplay } from './market-replay.ts'
import { OrderBook } from './order-book.ts'
import type { DatePlan, LobPlan, MarketPlan } from './plan.ts'
import type { Section } from './sections.ts'
import type { SnapshotSink } from './snapshot-sink.ts'

/** What the rows of one answer are made from and where they go. */
export interface SnapshotJob {
  readonly query: LobQuery
  readonly fileOf: FileOfDate
  /** Numbers all markets of the answer. */
  readonly marketNumbers: ReadonlyMap<string, number>
  readonly stream: ChunkStream
  readonly sink: SnapshotSink
  /** Whether the first rows are sent before the rest of their hour is decoded: see `DateSnapshots.#open`. */
  readonly isOpenedEarly: boolean
}

/** Writes every row of the plan and returns how many there were. */
export async function writeSnapshots(job: SnapshotJob, plan: LobPlan): Promise<number> {
  let rows = 0
  await job.sink.begin()
  for (const datePlan of plan.dates) {
    if (datePlan.markets.length === 0) continue
    rows += await new DateSnapshots(job, datePlan).write(0, Infinity)
  }
  await job.sink.finish()
  return rows
}

/** Writes the sections that `take` gives, ascending, until it gives none any more, and returns how many rows they had. */
export async function writeSections(
  job: SnapshotJob,
  sections: readonly Section[],
  take: () => number | Promise<number>,
): Promise<number> {
  let rows = 0
  let snapshots: DateSnapshots | undefined
  for (;;) {
    const number = await take()
    const section = sections[number]
    if (section === undefined) return rows
    if (snapshots?.datePlan !== section.datePlan) snapshots = new DateSnapshots(job, section.datePlan)
    await job.stream.beginSection(number)
    rows += await snapshots.write(section.firstTick, section.lastTick)
    job.stream.endSection()
  }
}

/** The rows of one date, from any tick on but never back: what lies between is skipped where keyframes allow it. */
class DateSnapshots {
  readonly datePlan: DatePlan
  readonly #job: SnapshotJob
  readonly #file: LakeFile
  readonly #replays: readonly MarketReplay[]
  readonly #numbers: readonly number[]
  #isOpening: boolean

  constructor(job: SnapshotJob, datePlan: DatePlan) {
    const { date, markets } = datePlan
    const { fileOf, stream } = job
    const file = fileOf(date)!
    const checkpoint = (): void => stream.throwIfCancelled()
    const carried = carryBooks(fileOf, date, markets, checkpoint)
    const ids = markets.map(({ id }) => id)
    const source = new EventSource(file, ids, checkpoint)
    this.datePlan = datePlan
    this.#job = job
    this.#file = file
    this.#replays = ids.map((id, number) => {
      const book = carried.get(id) ?? new OrderBook()
      book.isCarried = carried.has(id)
      book.isHeldInGaps = job.query.onGap === 'hold'
      return new MarketReplay(file, source, number, file.index.markets.get(id), book)
    })
    this.#numbers = ids.map((id) => job.marketNumbers.get(id)!)
    this.#isOpening = job.isOpenedEarly && !stream.hasSent
  }

  /** Writes the rows of the ticks from `from` to `to` and returns how many there were. */
  async write(from: number, to: number): Promise<number> {
    const { sink, query } = this.#job
    const { intervalS, onGap } = query
    const isSkipping = onGap === 'skip'
    const { markets, startSeconds } = this.datePlan
    const replays = this.#replays
    const firstTick = markets.reduce((first, market) => Math.min(first, market.firstTick), Infinity)
    const lastTick = markets.reduce((last, market) => Math.max(last, market.lastTick), -1)
    let rows = 0
    for (let tick = Math.max(from, firstTick); tick <= Math.min(to, lastTick); tick++) {
      const seconds = tick * intervalS
      const instant = seconds * NS_PER_SECOND
      for (let index = 0; index < markets.length; index++) {
        const market = markets[index]!
        if (tick < market.firstTick || tick > market.lastTick) continue
        const replay = replays[index]!
        if (this.#isOpening) await this.#open(replay, instant, rows)
        else replay.advanceTo(instant)
        if (isSkipping && !replay.book.isKnown) continue
        if (sink.isFull) await sink.makeRoom()
        sink.row(startSeconds + seconds, this.#numbers[index]!, replay.book)
        rows++
      }
    }
    sink.settleRows()
    this.#file.assertUnchanged()
    return rows
  }

  /**
   * Advances a book of an answer of which nothing is sent yet: from a preview where its row group is not decoded, so that
   * the first row is there soon. What is there is sent before anything is decoded for the next.
   */
  async #open(replay: MarketReplay, instant: number, rowsBefore: number): Promise<void> {
    const { sink, stream } = this.#job
    if (rowsBefore > 0 && !stream.hasSent && replay.hasToDecodeFor(instant)) await sink.makeRoom()
    this.#isOpening = !stream.hasSent
    if (this.#isOpening) replay.previewTo(instant)
    else replay.advanceTo(instant)
  }
}

/** The books that come from the dates before `date`, by market. `checkpoint` may throw to stop the request. */
export function carryBooks(
  fileOf: FileOfDate,
  date: string,
  markets: readonly Pick<MarketPlan, 'id' | 'carriedFrom'>[],
  checkpoint: () => void,
): Map<string, OrderBook> {
  const books = new Map<string, OrderBook>()
  const carried = markets.filter(({ carriedFrom }) => carriedFrom !== null)
  if (carried.length === 0) return books
  const earliest = carried.reduce(
    (first, { carriedFrom }) => (carriedFrom! < first ? carriedFrom! : first),
    date,
  )
  for (const day of utcDatesBetween(earliest, addDays(date, -1))) {
    const file = fileOf(day)!
    const ids = carried.filter(({ carriedFrom }) => carriedFrom! <= day).map(({ id }) => id)
    const source = new EventSource(file, ids, checkpoint)
    for (const [number, id] of ids.entries()) {
      const entry = file.index.markets.get(id)
      const replay = new MarketReplay(file, source, number, entry, books.get(id) ?? new OrderBook())
      // In a file with keyframes the hour of the last row holds everything that the book needs.
      if (entry !== undefined && entry.bookAtEnd === 'known') {
        replay.advanceTo(Math.floor(entry.last / HOUR_NS) * HOUR_NS)
      }
      replay.advanceToEnd()
      books.set(id, replay.book)
    }
    file.assertUnchanged()
  }
  return books
}
