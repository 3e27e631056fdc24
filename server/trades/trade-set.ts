// The trades of a date as a set. Messages may be added in any order and repeatedly; the result depends only on the set of messages.
//
// Several messages of one trade become one row: with the most precise `ts` (at equal precision, that of the best origin), the first
// receive time, and the best origin. If messages do not identify the trade, equal messages of one connection or segment are
// different trades, and equal messages of several are the same trades: the n-th of one is the n-th of another.

import { groupedBy } from '../../shared/grouped-by.ts'
import type { Trade, TradeOrigin } from '../../shared/trades-v1.ts'
import { TRADE_ORIGINS } from '../../shared/trades-v1.ts'
import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import type { TradeMessage } from '../feed/trade-message.ts'

/** Where a message was found. */
export interface TradeSighting {
  readonly recvTs: bigint | undefined
  readonly origin: TradeOrigin
  /** The connection, or the segment. Equal messages within it are different trades. */
  readonly group: string
  /** The message's place in a recorder's connection: a message may be in several segments. */
  readonly place: number | undefined
}

export interface SetTrade extends Trade {
  /** Its price was more precise than the unit. */
  readonly isRounded: boolean
}

interface Sighted extends TradeSighting {
  readonly message: TradeMessage
}

/** A trade under construction. Origins are indices in TRADE_ORIGINS. */
interface Merged extends Omit<TradeMessage, 'isUnique'> {
  readonly tsOrigin: number
  readonly recvTs: bigint | null
  readonly origin: number
}

const SECOND_NS = BigInt(NS_PER_SECOND)

export class TradeSet {
  readonly #unique = new Map<string, Merged>()
  /** Messages that do not identify their trade, by content and group. */
  readonly #groups = new Map<string, Map<string, Sighted[]>>()

  add(message: TradeMessage, sighting: TradeSighting): void {
    if (message.isUnique) {
      const known = this.#unique.get(message.id!)
      const next = mergedOf({ message, ...sighting }, message.id)
      this.#unique.set(message.id!, known === undefined ? next : merge(known, next))
      return
    }
    const key = contentOf(message)
    let groups = this.#groups.get(key)
    if (groups === undefined) this.#groups.set(key, (groups = new Map()))
    const group = groups.get(sighting.group)
    if (group === undefined) groups.set(sighting.group, [{ message, ...sighting }])
    else if (sighting.place === undefined || group.every(({ place }) => place !== sighting.place))
      group.push({ message, ...sighting })
  }

  /** The trades in file order. */
  result(): readonly SetTrade[] {
    const all = [...this.#groups.values()].flatMap(tradesOf)
    const sided = joined(all, ({ id, aggressor }) => id !== null && aggressor === 'unknown', fillOf)
    const named = joined(sided, ({ id }) => id === null, momentOf)
    return [...this.#unique.values(), ...named].toSorted(compare).map(tradeOf)
  }
}

/** Equal for equal messages of one transaction, or of one second if the transaction is unknown. */
function contentOf(message: TradeMessage): string {
  return `${message.id ?? ''} ${message.id === null ? secondOf(message.ts) : ''} ${termsOf(message)}`
}

function termsOf({ marketId, price, qty, aggressor }: TradeMessage | Merged): string {
  return `${marketId} ${price} ${qty} ${aggressor}`
}

/** Messages of one transaction are of the same trade if these agree. */
function fillOf({ id, marketId, price, qty }: Merged): string {
  return `${id} ${marketId} ${price} ${qty}`
}

/** The same if the transaction of one message is unknown. */
function momentOf(trade: Merged): string {
  return `${secondOf(trade.ts)} ${termsOf(trade)}`
}

function secondOf(ts: bigint): bigint {
  return ts / SECOND_NS
}

/** The trades of equal messages: as many as in the group with the most. */
function tradesOf(groups: ReadonlyMap<string, readonly Sighted[]>): readonly Merged[] {
  const trades: Merged[] = []
  for (const group of groups.values()) {
    for (const [ordinal, sighted] of group.toSorted(compareSighted).entries()) {
      const { id } = sighted.message
      const next = mergedOf(sighted, id === null ? null : `${id}:${ordinal}`)
      const known = trades[ordinal]
      trades[ordinal] = known === undefined ? next : merge(known, next)
    }
  }
  return trades
}

/** Joins a trade without id or side to one that has it and the same key, each once and in order of time. */
function joined(
  trades: readonly Merged[],
  lacks: (trade: Merged) => boolean,
  keyOf: (trade: Merged) => string,
): readonly Merged[] {
  const waiting = groupedBy(trades.filter(lacks).toSorted(compare), keyOf)
  if (waiting.size === 0) return trades
  const whole = trades.filter((trade) => !lacks(trade)).toSorted(compare)
  const result = whole.map((trade) => {
    const same = waiting.get(keyOf(trade))?.shift()
    return same === undefined ? trade : { ...merge(trade, same), id: trade.id }
  })
  return [...result, ...[...waiting.values()].flat()]
}

function mergedOf({ message, recvTs, origin: name }: Sighted, id: string | null): Merged {
  const origin = TRADE_ORIGINS.indexOf(name)
  const { isUnique: _, ...terms } = message
  // A REST row was not received when the trade happened.
  const received = name === 'rest' || recvTs === undefined ? null : recvTs
  return { ...terms, id, tsOrigin: origin, recvTs: received, origin }
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

function compareSighted(
  { message: a, recvTs: x = 0n }: Sighted,
  { message: b, recvTs: y = 0n }: Sighted,
): number {
  if (a.ts !== b.ts) return a.ts < b.ts ? -1 : 1
  return x === y ? 0 : x < y ? -1 : 1
}

/** The file order. */
function compare(a: Merged, b: Merged): number {
  if (a.ts !== b.ts) return a.ts < b.ts ? -1 : 1
  if (a.marketId !== b.marketId) return a.marketId < b.marketId ? -1 : 1
  if (a.id !== b.id) return a.id === null ? 1 : b.id === null || a.id < b.id ? -1 : 1
  if (a.price !== b.price) return a.price - b.price
  if (a.qty !== b.qty) return a.qty - b.qty
  if (a.aggressor !== b.aggressor) return a.aggressor < b.aggressor ? -1 : 1
  if (a.recvTs !== b.recvTs) return (a.recvTs ?? 0n) < (b.recvTs ?? 0n) ? -1 : 1
  return a.origin - b.origin
}

function tradeOf({ id: tradeId, origin, tsDigits: _digits, tsOrigin: _origin, ...trade }: Merged): SetTrade {
  return { ...trade, tradeId, origin: TRADE_ORIGINS[origin]! }
}
