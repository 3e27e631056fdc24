// The books at one instant, exact to the nanosecond, each with its provenance. In a file with keyframes, only the row groups of
// one hour are read. By receive time, an event counts from its `recv_ts` on. The replay then begins at the last hour before
// which all events had been received, and skips the keyframes of later hours, which include events that came later.

import type { InstantState, LobInstant } from '../../shared/lob-task.ts'
import { EVENT_CLEAR, EVENT_GAP, PRICE_UNITS_PER_DOLLAR, SIDE_ASK } from '../../shared/lob-v1.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { namingFile } from '../lake/lake-file-error.ts'
import { decodeInt32, decodeInt64, decodeStrings } from '../../shared/lob-file/decode-column.ts'
import { HOUR_NS, type IndexedRowGroup, mayHoldMarket } from './file-index.ts'
import type { FileOfDate, LakeFile } from './lake-file.ts'
import { type BookSide, CENTS_PER_DOLLAR, type EventColumns, OrderBook } from './order-book.ts'
import { type CloseTimes, knownMarkets, type KnownMarket } from './plan.ts'
import { midOf, spreadOf } from './quote.ts'
import { carryBooks } from './snapshots.ts'

/** The sequence number of rows that the exchange did not send. */
const NO_SEQ = 0

export interface InstantJob {
  /** The UTC date of the instant; it has a file. */
  readonly date: string
  readonly at: LobInstant
  readonly levels: number
  readonly fileOf: FileOfDate
  readonly isWanted: (marketId: string) => boolean
  readonly closesAtMs: CloseTimes
}

/** One JSON object for each market whose book was known at or before the instant, in code unit order of the ids. */
export function booksAt(job: InstantJob): string[] {
  const { date, at, fileOf, isWanted, closesAtMs } = job
  const file = fileOf(date)!
  const { index, baseNs } = file
  const instant = Number(BigInt(at.ns) - baseNs)
  const markets = knownMarkets(date, index, isWanted, (each) => fileOf(each)?.index)
  const carried = carryBooks(fileOf, date, markets, () => {})
  const firstHour = firstHourOf(file, instant, at.by)
  const replays = markets.map((market) => {
    const closeMs = closesAtMs[market.id]
    const closes = closeMs === undefined ? Infinity : Number(BigInt(closeMs) * NS_PER_MS - baseNs)
    // A carried book has keyframes only after the file's first snapshot of it.
    const firstBook = index.markets.get(market.id)?.firstBook ?? Infinity
    const hour = Math.min(firstHour, Math.floor(closes / HOUR_NS))
    const isCarried = market.carriedFrom !== null && hour < Math.ceil(firstBook / HOUR_NS)
    const bounds = { instant, by: at.by, firstHour: isCarried ? Number.NEGATIVE_INFINITY : hour, closes }
    return new InstantReplay(market, isCarried ? carried.get(market.id) : undefined, bounds)
  })
  const numbers = new Map(markets.map(({ id }, number) => [id, number]))
  for (const [number, group] of index.rowGroups.entries()) {
    const from = at.by === 'exchange' ? group.tsMin : receiptsOf(group, baseNs).min
    if (from > instant || !replays.some((replay) => replay.wants(group))) continue
    const rows = namingFile(file.place, () => decodeRows(file, group, numbers))
    const rowsOf = replays.map((): number[] => [])
    for (let row = 0; row < group.rows; row++) rowsOf[rows.market[row]!]?.push(row)
    for (const [market, its] of rowsOf.entries())
      if (replays[market]!.wants(group)) replays[market]!.take(rows, its, number)
  }
  file.assertUnchanged()
  return replays.flatMap((replay) => replay.record(file, job))
}

/**
 * The hour with whose keyframes the replay begins; -Infinity (the start of the file) if it has no keyframes. The hours after the
 * end of the recording have none.
 */
function firstHourOf({ index, baseNs }: LakeFile, instant: number, by: LobInstant['by']): number {
  if (!index.isSeekable) return Number.NEGATIVE_INFINITY
  const hour = Math.floor(Math.min(instant, index.coversTo) / HOUR_NS)
  if (by === 'exchange') return hour
  const late = index.rowGroups.find((group) => receiptsOf(group, baseNs).max > instant)
  return Math.min(hour, late?.hour ?? hour)
}

/** The first and the last receive time of a row group, ns after midnight; -Infinity and Infinity without statistics. */
function receiptsOf(
  { columns }: IndexedRowGroup,
  baseNs: bigint,
): { readonly min: number; readonly max: number } {
  const { min_value: min, max_value: max } = columns.recv_ts.metadata.statistics ?? {}
  return {
    min: typeof min === 'bigint' ? Number(min - baseNs) : Number.NEGATIVE_INFINITY,
    max: typeof max === 'bigint' ? Number(max - baseNs) : Number.POSITIVE_INFINITY,
  }
}

/** The rows of a row group; `market` is the number of a requested market, or -1. */
interface GroupRows extends EventColumns {
  readonly recvTs: Float64Array
  readonly seq: Float64Array
  readonly market: Int32Array
}

function decodeRows(file: LakeFile, group: IndexedRowGroup, numbers: ReadonlyMap<string, number>): GroupRows {
  const { rows: length, columns } = group
  const integers = (name: 'ts' | 'recv_ts' | 'seq' | 'qty', base = 0n): Float64Array =>
    decodeInt64(file.readChunk(columns[name]), columns[name], length, base)
  const codes = (name: 'event' | 'side' | 'price', max: number): Int32Array =>
    decodeInt32(file.readChunk(columns[name]), columns[name], length, max)
  const { market_id: id } = columns
  return {
    length,
    ts: integers('ts', file.baseNs),
    recvTs: integers('recv_ts', file.baseNs),
    seq: integers('seq'),
    market: decodeStrings(file.readChunk(id), id, length, (name) => numbers.get(name) ?? -1),
    event: Uint8Array.from(codes('event', EVENT_GAP)),
    side: Uint8Array.from(codes('side', SIDE_ASK)),
    price: codes('price', PRICE_UNITS_PER_DOLLAR),
    qty: integers('qty'),
  }
}

interface InstantBounds {
  readonly instant: number
  readonly by: LobInstant['by']
  readonly firstHour: number
  /** When the market closes; later events are ignored. */
  readonly closes: number
}

/** The times (ns after midnight) and sequence number of an event that changed a book. */
interface AppliedEvent {
  readonly ts: number
  readonly recvTs: number
  readonly seq: number
}

/** Replays one market up to the instant. */
class InstantReplay {
  readonly #market: KnownMarket
  readonly #bounds: InstantBounds
  readonly #book: OrderBook
  #isBegun: boolean
  #clearedAt: number | null = null
  #group: number | null = null
  #last: AppliedEvent | null = null
  #applied = 0

  /** `book`: the book carried into the date. */
  constructor(market: KnownMarket, book: OrderBook | undefined, bounds: InstantBounds) {
    this.#market = market
    this.#bounds = bounds
    this.#book = book ?? new OrderBook()
    // A book that was known before the first hour, and was lost since, has no keyframe there.
    const { knownFrom } = market
    this.#isBegun = book === undefined ? knownFrom < bounds.firstHour * HOUR_NS : knownFrom <= bounds.instant
  }

  wants(group: IndexedRowGroup): boolean {
    return (
      (group.hour === -1 || group.hour >= this.#bounds.firstHour) && mayHoldMarket(group, this.#market.id)
    )
  }

  /** Applies the due rows among those with these numbers, in order. */
  take(rows: GroupRows, numbers: readonly number[], group: number): void {
    const due = numbers.filter((row) => this.#isDue(rows, row))
    if (due.length === 0) return
    const events = {
      length: due.length,
      ts: Float64Array.from(due, (row) => rows.ts[row]!),
      event: Uint8Array.from(due, (row) => rows.event[row]!),
      side: Uint8Array.from(due, (row) => rows.side[row]!),
      price: Int32Array.from(due, (row) => rows.price[row]!),
      qty: Float64Array.from(due, (row) => rows.qty[row]!),
    }
    this.#book.replay(events, 0, Infinity)
    this.#group = group
    for (const row of due) {
      const [ts, recvTs, seq] = [rows.ts[row]!, rows.recvTs[row]!, rows.seq[row]!]
      if (rows.event[row] === EVENT_CLEAR) {
        this.#isBegun = true
        this.#clearedAt = ts
        this.#applied = 0
      }
      this.#applied++
      if (!isKeyframe(rows, row)) this.#last = { ts, recvTs, seq }
    }
  }

  #isDue(rows: GroupRows, row: number): boolean {
    const { instant, by, firstHour, closes } = this.#bounds
    const ts = rows.ts[row]!
    if (ts > closes) return false
    if (by === 'exchange') return ts <= instant
    return rows.recvTs[row]! <= instant && (ts < (firstHour + 1) * HOUR_NS || !isKeyframe(rows, row))
  }

  /** The market's record, as a list of one; empty if its book was never known before the instant. */
  record({ name, baseNs, index }: LakeFile, { at, levels }: InstantJob): readonly string[] {
    if (!this.#isBegun) return []
    const book = this.#book
    const [best_bid, best_ask] = [book.bestBid(), book.bestAsk()]
    const nsOf = (relative: number | undefined): bigint | null =>
      relative === undefined ? null : baseNs + BigInt(relative)
    const last = this.#last
    const lastAt = at.by === 'exchange' ? last?.ts : last?.recvTs
    const provenance = jsonObject({
      file: name,
      row_group: this.#group,
      keyframe_ts: nsOf(this.#clearedAt ?? undefined),
      last_event_ts: nsOf(last?.ts),
      last_received_ts: nsOf(last?.recvTs),
      sequence: last?.seq ?? null,
      events_applied: this.#applied,
      age_ms: lastAt === undefined ? null : Math.floor((this.#bounds.instant - lastAt) / Number(NS_PER_MS)),
      state: this.#stateOf(index.coversTo, best_bid, best_ask),
    })
    const record = jsonObject({
      ts: BigInt(at.ns),
      market_id: this.#market.id,
      best_bid,
      best_ask,
      spread: spreadOf(best_bid, best_ask),
      mid: midOf(best_bid, best_ask),
      bids: levelsOf(book.bids, levels, (slot) => slot),
      asks: levelsOf(book.asks, levels, (slot) => CENTS_PER_DOLLAR - slot),
    })
    return [`${record.slice(0, -1)},"provenance":${provenance}}`]
  }

  #stateOf(coversTo: number, bestBid: number, bestAsk: number): InstantState {
    const { instant, closes } = this.#bounds
    if (instant > closes) return 'closed'
    if (instant > coversTo) return 'not_recorded'
    if (!this.#book.isKnown) return 'gap'
    if (bestBid !== 0 && bestAsk !== 0 && bestBid >= bestAsk) return 'crossed'
    return this.#clearedAt === null ? 'carried' : 'known'
  }
}

/** Whether a row belongs to a keyframe, which repeats at the start of an hour the book of the rows before. */
function isKeyframe({ ts, seq, event }: GroupRows, row: number): boolean {
  return seq[row] === NO_SEQ && ts[row]! % HOUR_NS === 0 && event[row] !== EVENT_GAP
}

function levelsOf(side: BookSide, levels: number, priceOf: (slot: number) => number) {
  const slots = new Uint8Array(levels)
  const contracts = new Float64Array(levels)
  const count = side.takeTop(levels, slots, contracts)
  return Array.from({ length: count }, (_, level) => ({
    price: priceOf(slots[level]!),
    qty: contracts[level]!,
  }))
}

/** A JSON object; BigInts are written as integers. */
function jsonObject(values: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(values).map(
    ([name, value]) =>
      `${JSON.stringify(name)}:${typeof value === 'bigint' ? String(value) : JSON.stringify(value)}`,
  )
  return `{${members.join(',')}}`
}
