// Writes the rows of a planned request, by date, tick and market. Each row shows the market's book at that tick. Books that
// continue from earlier dates are first replayed from the files of those dates.

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

/** The inputs and outputs of one answer. */
export interface SnapshotJob {
  readonly query: LobQuery
  readonly fileOf: FileOfDate
  /** The number of each market of the answer. */
  readonly marketNumbers: ReadonlyMap<string, number>
  readonly stream: ChunkStream
  readonly sink: SnapshotSink
  /** Whether the first rows are sent before the rest of their hour is decoded (`DateSnapshots.#open`). */
  readonly isOpenedEarly: boolean
}

/** Writes every row of the plan. Returns the number of rows. */
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

/** Writes the sections whose numbers `take` returns, ascending, until it returns no valid one. Returns the number of rows. */
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

/** The rows of one date. Ticks must not decrease; those between two calls are skipped by keyframes if there are any. */
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

  /** Writes the rows of the ticks from `from` to `to`. Returns the number of rows. */
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
   * Advances a book while nothing of the answer has been sent. Uses a preview of a row group that is not decoded, so that the
   * first row is ready early, and sends the rows so far before it decodes for the next one.
   */
  async #open(replay: MarketReplay, instant: number, rowsBefore: number): Promise<void> {
    const { sink, stream } = this.#job
    if (rowsBefore > 0 && !stream.hasSent && replay.hasToDecodeFor(instant)) await sink.makeRoom()
    this.#isOpening = !stream.hasSent
    if (this.#isOpening) replay.previewTo(instant)
    else replay.advanceTo(instant)
  }
}

/** The books that continue from dates before `date`, by market. `checkpoint` may throw to stop the request. */
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
      // In a file with keyframes, the hour of the last row is enough to build the book.
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
