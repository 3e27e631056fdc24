// The answer of a planned request: date by date, tick by tick, market by market, each row taken from the market's book
// at that tick. Books that the date's own file does not make known are replayed from the dates before it first.

import type { LobQuery } from '../../shared/lob-task.ts'
import { addDays, NS_PER_SECOND, utcDatesBetween } from '../../shared/utc-date.ts'
import { EventSource } from './event-source.ts'
import { HOUR_NS } from './file-index.ts'
import type { LakeFile } from './lake-file.ts'
import { MarketReplay } from './market-replay.ts'
import { OrderBook } from './order-book.ts'
import type { DatePlan, LobPlan, MarketPlan } from './plan.ts'
import type { SnapshotSink } from './snapshot-sink.ts'

/** The opened file of a date; undefined when there is none. */
export type FileOfDate = (date: string) => LakeFile | undefined

/** What the rows of one answer are made from and where they go. */
export interface SnapshotJob {
  readonly query: LobQuery
  readonly plan: LobPlan
  readonly fileOf: FileOfDate
  /** Numbers all markets of the answer. */
  readonly marketNumbers: ReadonlyMap<string, number>
  readonly sink: SnapshotSink
  /** Called before every row group is decoded; throws when the request was cancelled. */
  readonly checkpoint: () => void
}

/** Writes every row of the plan and returns how many there were. */
export async function writeSnapshots(job: SnapshotJob): Promise<number> {
  let rows = 0
  await job.sink.begin()
  for (const datePlan of job.plan.dates) {
    if (datePlan.markets.length > 0) rows += await writeDate(job, datePlan)
  }
  await job.sink.finish()
  return rows
}

async function writeDate(job: SnapshotJob, { date, startSeconds, markets }: DatePlan): Promise<number> {
  const { fileOf, marketNumbers, sink } = job
  const { intervalS } = job.query
  const file = fileOf(date)!
  const carried = carryBooks(job, date, markets)
  const source = new EventSource(
    file,
    markets.map(({ id }) => id),
    job.checkpoint,
  )
  const replays = markets.map(
    ({ id }, number) =>
      new MarketReplay(file, source, number, file.index.markets.get(id), carried.get(id) ?? new OrderBook()),
  )
  const numbers = markets.map(({ id }) => marketNumbers.get(id)!)
  const firstTick = markets.reduce((first, market) => Math.min(first, market.firstTick), Infinity)
  const lastTick = markets.reduce((last, market) => Math.max(last, market.lastTick), -1)
  let rows = 0
  for (let tick = firstTick; tick <= lastTick; tick++) {
    const seconds = tick * intervalS
    const instant = seconds * NS_PER_SECOND
    for (let index = 0; index < markets.length; index++) {
      const market = markets[index]!
      if (tick < market.firstTick || tick > market.lastTick) continue
      const replay = replays[index]!
      replay.advanceTo(instant)
      if (sink.isFull) await sink.makeRoom()
      sink.row(startSeconds + seconds, numbers[index]!, replay.book)
      rows++
    }
  }
  file.assertUnchanged()
  return rows
}

/** The books that come from the dates before `date`, by market. */
function carryBooks(
  { fileOf, checkpoint }: SnapshotJob,
  date: string,
  markets: readonly MarketPlan[],
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
