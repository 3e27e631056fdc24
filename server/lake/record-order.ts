// The order in which one market's records of an hour are folded. Each strand's messages come in the order of the feed
// (its numbers, else arrival), without what several recordings of the feed have in common; strands come merged by time.

import { EVENT_ADD, EVENT_CLEAR, EVENT_SET } from '../../shared/lob-v1.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import type { EventRecords } from './event-spill.ts'
import { FEED_LEFT } from './market-fold.ts'

/** Channels of one connection overtake each other by less. */
const LATE_NS = 5_000_000_000n

/** What the records' span numbers mean. */
export interface StrandTable {
  /** Strands of events that are told in their final order and are complete: nothing is sorted, nothing is evidence. */
  readonly isTold: boolean
  strandOf(span: number): number
  /** Place of a span among its strand's, in feed order. */
  placeOf(span: number): number
  isNumbered(strand: number): boolean
  /** Whether its ask prices are still those of the `no` leg. */
  isInverted(span: number): boolean
  /** Whether some recorder's clock was behind. */
  readonly hasBehind: boolean
  /** By how much the clock of a strand's recorder was behind in the date of an hour (counted since the epoch), ns. */
  behindIn(hour: number): (strand: number) => bigint
  /** Where the span's messages come from, for messages. */
  nameOf(span: number): string
}

/** Events of one teller. */
export const TOLD: StrandTable = {
  isTold: true,
  strandOf: () => 0,
  placeOf: () => 0,
  isNumbered: () => false,
  isInverted: () => false,
  hasBehind: false,
  behindIn: () => () => 0n,
  nameOf: () => '',
}

/** Two recordings of one strand say different things under one number. */
export class ContradictionError extends Error {
  constructor(market: string, seq: bigint, names: readonly [string, string]) {
    const [first, second] = names
    super(
      `${market}: message ${seq} of one subscription is not the same in ${first} and in ${second}; ` +
        'leave out the wrong one, or write the dates anew with --replace',
    )
    this.name = 'ContradictionError'
  }
}

/**
 * The records `[from, to)` of one market in their final order, as record numbers; undefined when they are in it already.
 * Times are raised in place where a strand's go back.
 */
export function orderOfRecords(
  market: string,
  records: EventRecords,
  from: number,
  to: number,
  table: StrandTable,
): readonly number[] | undefined {
  if (table.isTold || isInOrder(records, from, to, table)) return undefined
  const byStrand = new Map<number, number[]>()
  for (let record = from; record < to; record++) {
    const strand = table.strandOf(records.span(record))
    const list = byStrand.get(strand)
    if (list === undefined) byStrand.set(strand, [record])
    else list.push(record)
  }
  const lists = [...byStrand]
    .toSorted(([a], [b]) => a - b)
    .map(([strand, list]) => {
      const isNumbered = table.isNumbered(strand)
      const ordered = new StrandOrder(market, records, table, isNumbered).order(list)
      if (isNumbered) lowerSnapshots(records, ordered)
      raiseTimes(records, ordered)
      return ordered
    })
  return mergeByTime(records, lists)
}

function isInOrder(records: EventRecords, from: number, to: number, table: StrandTable): boolean {
  if (from === to) return true
  const span = records.span(from)
  const isNumbered = table.isNumbered(table.strandOf(span))
  for (let record = from + 1; record < to; record++) {
    if (records.span(record) !== span || records.ts(record) < records.ts(record - 1)) return false
    const isNext = isNumbered
      ? records.seq(record) >= records.seq(record - 1)
      : records.recvTs(record) >= records.recvTs(record - 1)
    if (!isNext) return false
  }
  return true
}

class StrandOrder {
  readonly #market: string
  readonly #records: EventRecords
  readonly #table: StrandTable
  readonly #isNumbered: boolean

  constructor(market: string, records: EventRecords, table: StrandTable, isNumbered: boolean) {
    this.#market = market
    this.#records = records
    this.#table = table
    this.#isNumbered = isNumbered
  }

  order(list: readonly number[]): number[] {
    const sorted = list.toSorted(
      (a, b) =>
        this.#compareKeys(a, b) || this.#compareMarks(a, b) || this.#placeOf(a) - this.#placeOf(b) || a - b,
    )
    const ordered: number[] = []
    for (let from = 0; from < sorted.length;) {
      let to = from + 1
      while (to < sorted.length && this.#compareKeys(sorted[from]!, sorted[to]!) === 0) to++
      ordered.push(...this.#withoutRepeats(sorted.slice(from, to)))
      from = to
    }
    return ordered
  }

  #placeOf(record: number): number {
    return this.#table.placeOf(this.#records.span(record))
  }

  /** Marks come after the message that they follow. */
  #compareMarks(a: number, b: number): number {
    const isMark = (record: number): number => (this.#records.event(record) >= FEED_LEFT ? 1 : 0)
    return isMark(a) - isMark(b)
  }

  #compareKeys(a: number, b: number): number {
    const [left, right] = this.#isNumbered
      ? [this.#records.seq(a), this.#records.seq(b)]
      : [this.#records.recvTs(a), this.#records.recvTs(b)]
    return left < right ? -1 : left > right ? 1 : 0
  }

  /** Records of one number or receive time: what the first span says, and of the others what it does not say. */
  #withoutRepeats(group: readonly number[]): number[] {
    const bySpan = new Map<number, number[]>()
    for (const record of group) {
      const span = this.#records.span(record)
      const list = bySpan.get(span)
      if (list === undefined) bySpan.set(span, [record])
      else list.push(record)
    }
    if (bySpan.size === 1) return [...group]
    const [first, ...others] = [...bySpan.values()]
    const kept = [...first!]
    for (const other of others) {
      const missing = this.#missing(kept, other)
      if (this.#isNumbered) this.#refuseOther(kept, missing)
      kept.push(...(this.#isAnotherBook(kept, other, missing) ? other : missing))
    }
    return kept
  }

  /** Without numbers, two books may come at one time: their levels do not belong together. */
  #isAnotherBook(kept: readonly number[], other: readonly number[], missing: readonly number[]): boolean {
    const isClear = (record: number): boolean => this.#records.event(record) === EVENT_CLEAR
    if (this.#isNumbered || missing.length === 0 || missing.some(isClear) || !other.some(isClear))
      return false
    return this.#missing(other, kept).length > 0
  }

  /** What `other` holds besides; a content that stands twice in it must stand twice. */
  #missing(kept: readonly number[], other: readonly number[]): number[] {
    const counts = new Map<string, number>()
    for (const record of kept) {
      const text = this.#contentOf(record)
      counts.set(text, (counts.get(text) ?? 0) + 1)
    }
    return other.filter((record) => {
      const text = this.#contentOf(record)
      const left = counts.get(text) ?? 0
      if (left > 0) counts.set(text, left - 1)
      return left === 0
    })
  }

  #refuseOther(kept: readonly number[], missing: readonly number[]): void {
    const other = missing.find((record) => this.#records.event(record) < FEED_LEFT)
    const own = kept.find((record) => this.#records.event(record) < FEED_LEFT)
    if (own === undefined || other === undefined) return
    const nameOf = (record: number): string => this.#table.nameOf(this.#records.span(record))
    throw new ContradictionError(this.#market, this.#records.seq(own), [nameOf(own), nameOf(other)])
  }

  #contentOf(record: number): string {
    const records = this.#records
    return `${records.event(record)} ${records.side(record)} ${records.price(record)} ${records.qty(record)}`
  }
}

/**
 * Whether a snapshot, which has no time but its receipt, stands so long after the change that follows it by number that
 * the recorder's clock must be ahead, or the message was long under way, ns. Over the end of an hour none is put earlier:
 * hours are folded one by one.
 */
export function isSnapshotLate(ts: bigint, nextTs: bigint): boolean {
  return ts > nextTs + LATE_NS && ts / NS_PER_HOUR === nextTs / NS_PER_HOUR
}

/** Lets late snapshots stand where the next change does: the book was there by then, and a change is not held back. */
function lowerSnapshots(records: EventRecords, ordered: readonly number[]): void {
  let next: bigint | undefined
  for (const record of ordered.toReversed()) {
    const event = records.event(record)
    if (event === EVENT_ADD) next = records.ts(record)
    else if (event > EVENT_SET) next = undefined
    else if (next !== undefined && isSnapshotLate(records.ts(record), next)) records.move(record, next)
  }
}

function raiseTimes(records: EventRecords, ordered: readonly number[]): void {
  let last = -1n
  for (const record of ordered) {
    if (records.ts(record) < last) records.move(record, last)
    else last = records.ts(record)
  }
}

/** Lists with ascending times as one; of equal times the earlier list's come first. */
function mergeByTime(records: EventRecords, lists: readonly (readonly number[])[]): readonly number[] {
  if (lists.length === 1) return lists[0]!
  // A stable sort of what is sorted in pieces: a recording of many holes has as many lists.
  return lists.flat().toSorted((a, b) => {
    const [left, right] = [records.ts(a), records.ts(b)]
    return left < right ? -1 : left > right ? 1 : 0
  })
}
