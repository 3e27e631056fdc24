// The trades of a date as a set. Messages may be added in any order and repeatedly; the result depends only on the set of messages.
//
// Several messages of one trade become one row: with the most precise `ts` (at equal precision, that of the best origin), the first
// receive time, and the best origin. If messages do not identify the trade, equal messages of one connection or segment are
// different trades, and equal messages of several are the same trades: the n-th of one is the n-th of another.

import { TRADE_ORIGINS } from '../../shared/trades-v1.ts'
import type { TradeOrigin } from '../../shared/trades-v1.ts'
import type { TradeMessage } from '../feed/trade-message.ts'
import { TradeList, TradeRows } from './trade-rows.ts'
import type { Merged, RowOrder } from './trade-rows.ts'

/** Where a message was found. */
export interface TradeSighting {
  readonly recvTs: bigint | undefined
  readonly origin: TradeOrigin
  /** The connection, or the segment. Equal messages within it are different trades. */
  readonly group: string
  /** The message's place in a recorder's connection: a message may be in several segments. */
  readonly place: number | undefined
}

export class TradeSet {
  /** The beginning of the date, ns. */
  readonly #from: bigint
  readonly #trades: TradeRows
  readonly #indexes = new Map<string, number>()
  /** Messages that do not identify their trade. */
  readonly #sightings: TradeRows
  readonly #groups = new Map<string, number>()

  constructor(from: bigint) {
    this.#from = from
    this.#trades = new TradeRows(from)
    this.#sightings = new TradeRows(from)
  }

  add(message: TradeMessage, sighting: TradeSighting): void {
    const next = mergedOf(message, sighting)
    if (!message.isUnique) {
      const group = this.#groups.get(sighting.group) ?? this.#groups.size
      this.#groups.set(sighting.group, group)
      this.#sightings.add(next, undefined, { group, place: sighting.place })
      return
    }
    const known = this.#indexes.get(message.id!)
    if (known === undefined) this.#indexes.set(message.id!, this.#trades.add(next))
    else this.#trades.set(known, merge(this.#trades.at(known), next))
  }

  /** The trades in file order, until the next message. */
  result(): TradeList {
    let rows = this.#trades
    let order = rows.indexes()
    if (this.#sightings.length > 0) {
      rows = new TradeRows(this.#from)
      for (const index of order) rows.add(this.#trades.at(index))
      addTrades(rows, this.#sightings)
      const all = rows.indexes(order.length)
      const lacksSide = (index: number): boolean =>
        rows.idOf(index) !== null && rows.aggressorOf(index) === 'unknown'
      const sided = joined(rows, all, lacksSide, rows.byFill)
      const named = joined(rows, sided, (index) => rows.idOf(index) === null, rows.byMoment)
      order = [...order, ...named]
    }
    return new TradeList(rows, order.toSorted(rows.inOrder))
  }
}

/** Adds the trades of messages: of equal ones, as many as in the group with the most. */
function addTrades(rows: TradeRows, sightings: TradeRows): void {
  const { byContent, byGroup, bySighting } = sightings
  const order = sightings.indexes().toSorted((a, b) => byContent(a, b) || byGroup(a, b) || bySighting(a, b))
  let before = order[0]!
  let first = rows.length
  let ordinal = -1
  for (const index of order) {
    if (byContent(before, index) !== 0) first = rows.length
    const isNext = rows.length > first && byGroup(before, index) === 0
    if (isNext && bySighting(before, index) === 0) continue
    ordinal = isNext ? ordinal + 1 : 0
    before = index
    const next = sightings.at(index)
    const known = first + ordinal
    if (known === rows.length) rows.add(next, next.id === null ? undefined : ordinal)
    else rows.set(known, merge(rows.at(known), next))
  }
}

/** Joins a trade that lacks its id or side to one that has it and equals it in `key`, each once and in order of time. */
function joined(
  rows: TradeRows,
  trades: readonly number[],
  lacks: (index: number) => boolean,
  key: RowOrder,
): readonly number[] {
  const sorted = (some: readonly number[]): number[] =>
    some.toSorted((a, b) => key(a, b) || rows.inOrder(a, b))
  const waiting = sorted(trades.filter(lacks))
  const whole = sorted(trades.filter((index) => !lacks(index)))
  let at = 0
  const alone = waiting.filter((index) => {
    while (at < whole.length && key(whole[at]!, index) < 0) at++
    const same = whole[at]
    if (same === undefined || key(same, index) !== 0) return true
    rows.set(same, merge(rows.at(same), rows.at(index)))
    at++
    return false
  })
  return [...whole, ...alone]
}

function mergedOf(
  message: TradeMessage,
  { recvTs, origin: name }: Pick<TradeSighting, 'recvTs' | 'origin'>,
): Merged {
  const origin = TRADE_ORIGINS.indexOf(name)
  // A REST row was not received when the trade happened.
  const received = name === 'rest' || recvTs === undefined ? null : recvTs
  return { ...message, tsOrigin: origin, recvTs: received, origin }
}

/** Commutative and associative. */
function merge(a: Merged, b: Merged): Merged {
  const time = hasBetterTime(b, a) ? b : a
  const content = hasBetterContent(b, a) ? b : a
  return {
    ...content,
    ts: time.ts,
    tsDigits: time.tsDigits,
    tsOrigin: time.tsOrigin,
    recvTs: a.recvTs === null || (b.recvTs !== null && b.recvTs < a.recvTs) ? b.recvTs : a.recvTs,
    // `unknown` sorts last.
    aggressor: a.aggressor < b.aggressor ? a.aggressor : b.aggressor,
    isRounded: a.isRounded || b.isRounded,
    block: a.block === null || b.block === true ? b.block : a.block,
  }
}

function hasBetterTime(a: Merged, b: Merged): boolean {
  if (a.tsDigits !== b.tsDigits) return a.tsDigits > b.tsDigits
  return a.tsOrigin === b.tsOrigin ? a.ts < b.ts : a.tsOrigin < b.tsOrigin
}

function hasBetterContent(a: Merged, b: Merged): boolean {
  if (a.origin !== b.origin) return a.origin < b.origin
  if (a.marketId !== b.marketId) return a.marketId < b.marketId
  return a.price === b.price ? a.qty < b.qty : a.price < b.price
}
