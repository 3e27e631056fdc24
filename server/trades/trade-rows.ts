// Trades in columns: a date may have millions, and an object each would need ten times the memory.

import { groupedBy } from '../../shared/grouped-by.ts'
import { AGGRESSORS, TRADE_ORIGINS } from '../../shared/trades-v1.ts'
import type { Aggressor, Trade } from '../../shared/trades-v1.ts'
import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import type { TradeMessage } from '../feed/trade-message.ts'

/** A trade under construction. Origins are indices in TRADE_ORIGINS. */
export interface Merged extends Omit<TradeMessage, 'isUnique'> {
  readonly tsOrigin: number
  readonly recvTs: bigint | null
  readonly origin: number
}

/** Where a message was found. */
export interface RowPlace {
  /** The number of the connection or segment. */
  readonly group: number
  /** The place in a recorder's connection. */
  readonly place: number | undefined
}

// A row is six 64-bit words. The last two are halves of 32 bits, whose places are counted in halves.
const WORDS = 6
const [RECV_TIME, QTY, PLACE] = [1, 2, 3] as const
const [PRICE, FLAGS, GROUP, ORDINAL] = [8, 9, 10, 11] as const
/** Compares two rows by their indexes. */
export type RowOrder = (a: number, b: number) => number

const NO_TIME = -1n
const NONE = -1
const NO_PLACE: RowPlace = { group: NONE, place: undefined }
const BLOCKS = [null, false, true] as const
const TWO_BITS = 3
const FOUR_BITS = 15

export class TradeRows {
  /** In ns. Times within 100 days of it are exact. */
  readonly #base: bigint
  readonly #ids: (string | null)[] = []
  readonly #markets: string[] = []
  #numbers = new Float64Array(0)
  /** The same bytes. */
  #times = new BigInt64Array(0)
  #ints = new Int32Array(0)

  constructor(base: bigint) {
    this.#base = base
  }

  get length(): number {
    return this.#ids.length
  }

  /** Adds a row and returns its index. With an ordinal, its id is that of `trade`, a colon and the ordinal. */
  add(trade: Merged, ordinal = NONE, { group, place = NONE }: RowPlace = NO_PLACE): number {
    const index = this.length
    const at = WORDS * index
    if (at === this.#numbers.length) this.#grow()
    this.#ids.push(trade.id)
    this.#markets.push('')
    this.#numbers[at + PLACE] = place
    this.#ints[2 * at + GROUP] = group
    this.#ints[2 * at + ORDINAL] = ordinal
    this.set(index, trade)
    return index
  }

  /** Sets everything but the id. */
  set(index: number, trade: Omit<Merged, 'id'>): void {
    const at = WORDS * index
    this.#markets[index] = trade.marketId
    this.#numbers[at] = Number(trade.ts - this.#base)
    this.#times[at + RECV_TIME] = trade.recvTs ?? NO_TIME
    this.#numbers[at + QTY] = trade.qty
    this.#ints[2 * at + PRICE] = trade.price
    this.#ints[2 * at + FLAGS] =
      AGGRESSORS.indexOf(trade.aggressor) |
      (BLOCKS.indexOf(trade.block) << 2) |
      (trade.origin << 4) |
      (trade.tsOrigin << 6) |
      (trade.tsDigits << 8) |
      (Number(trade.isRounded) << 12)
  }

  at(index: number): Merged {
    const at = WORDS * index
    const [id, ordinal] = [this.#ids[index]!, this.#ints[2 * at + ORDINAL]!]
    const [recvTs, flags] = [this.#times[at + RECV_TIME]!, this.#ints[2 * at + FLAGS]!]
    return {
      ts: this.#base + BigInt(this.timeOf(index)),
      recvTs: recvTs === NO_TIME ? null : recvTs,
      marketId: this.marketOf(index),
      id: id === null || ordinal === NONE ? id : `${id}:${ordinal}`,
      price: this.#ints[2 * at + PRICE]!,
      qty: this.#numbers[at + QTY]!,
      aggressor: this.aggressorOf(index),
      block: BLOCKS[(flags >> 2) & TWO_BITS]!,
      origin: (flags >> 4) & TWO_BITS,
      tsOrigin: (flags >> 6) & TWO_BITS,
      tsDigits: (flags >> 8) & FOUR_BITS,
      isRounded: this.isRounded(index),
    }
  }

  /** In ns after the base. */
  timeOf(index: number): number {
    return this.#numbers[WORDS * index]!
  }

  marketOf(index: number): string {
    return this.#markets[index]!
  }

  /** Without the ordinal. */
  idOf(index: number): string | null {
    return this.#ids[index]!
  }

  aggressorOf(index: number): Aggressor {
    return AGGRESSORS[this.#ints[2 * WORDS * index + FLAGS]! & TWO_BITS]!
  }

  isRounded(index: number): boolean {
    return ((this.#ints[2 * WORDS * index + FLAGS]! >> 12) & 1) === 1
  }

  indexes(from = 0): number[] {
    return Array.from({ length: this.length - from }, (_, index) => from + index)
  }

  /** The file order. */
  readonly inOrder: RowOrder = (a, b) => this.timeOf(a) - this.timeOf(b) || compare(this.at(a), this.at(b))

  /** 0 if two rows are of one second and their market, price, quantity and side agree. */
  readonly byMoment: RowOrder = (a, b) => this.#bySecond(a, b) || this.#byTerms(a, b) || this.#bySide(a, b)

  /** 0 if two rows have the same id (of one second if it is unknown), and their market, price and quantity agree. */
  readonly byFill: RowOrder = (a, b) => {
    const [x, y] = [this.#ids[a]!, this.#ids[b]!]
    if (x !== y) return x === null ? 1 : y === null || x < y ? -1 : 1
    return this.#by(ORDINAL, a, b) || (x === null ? this.#bySecond(a, b) : 0) || this.#byTerms(a, b)
  }

  /** 0 if the side agrees too. */
  readonly byContent: RowOrder = (a, b) => this.byFill(a, b) || this.#bySide(a, b)

  /** 0 if they are of one connection or segment. */
  readonly byGroup: RowOrder = (a, b) => this.#by(GROUP, a, b)

  /** Orders rows of equal content by time. 0 if they have the same place in a connection too. */
  readonly bySighting: RowOrder = (a, b) => {
    const [x, y] = [WORDS * a, WORDS * b]
    return (
      this.timeOf(a) - this.timeOf(b) ||
      Number(this.#times[x + RECV_TIME]! - this.#times[y + RECV_TIME]!) ||
      this.#numbers[x + PLACE]! - this.#numbers[y + PLACE]! ||
      (this.#numbers[x + PLACE] === NONE ? this.#by(FLAGS, a, b) || a - b : 0)
    )
  }

  #bySecond(a: number, b: number): number {
    return Math.floor(this.timeOf(a) / NS_PER_SECOND) - Math.floor(this.timeOf(b) / NS_PER_SECOND)
  }

  #byTerms(a: number, b: number): number {
    const [x, y] = [this.#markets[a]!, this.#markets[b]!]
    if (x !== y) return x < y ? -1 : 1
    return this.#by(PRICE, a, b) || this.#numbers[WORDS * a + QTY]! - this.#numbers[WORDS * b + QTY]!
  }

  #bySide(a: number, b: number): number {
    return AGGRESSORS.indexOf(this.aggressorOf(a)) - AGGRESSORS.indexOf(this.aggressorOf(b))
  }

  #by(half: number, a: number, b: number): number {
    return this.#ints[2 * WORDS * a + half]! - this.#ints[2 * WORDS * b + half]!
  }

  #grow(): void {
    const numbers = new Float64Array(Math.max(WORDS * 1024, 2 * this.#numbers.length))
    // Other bits could become those of another NaN.
    new BigInt64Array(numbers.buffer).set(this.#times)
    this.#numbers = numbers
    this.#times = new BigInt64Array(numbers.buffer)
    this.#ints = new Int32Array(numbers.buffer)
  }
}

/** Some trades in file order, made as they are read. */
export class TradeList implements Iterable<Trade> {
  readonly #rows: TradeRows
  readonly #order: readonly number[]

  constructor(rows: TradeRows, order: readonly number[]) {
    this.#rows = rows
    this.#order = order
  }

  get length(): number {
    return this.#order.length
  }

  get rounded(): number {
    return this.#order.filter((index) => this.#rows.isRounded(index)).length
  }

  at(position: number): Trade | undefined {
    const index = this.#order.at(position)
    return index === undefined ? undefined : tradeOf(this.#rows.at(index))
  }

  /** The trades by a key of their markets and times, each list in file order. */
  groupedBy<Key>(keyOf: (marketId: string, ns: number) => Key): Map<Key, TradeList> {
    const rows = this.#rows
    const groups = groupedBy(this.#order, (index) => keyOf(rows.marketOf(index), rows.timeOf(index)))
    return new Map([...groups].map(([key, order]) => [key, new TradeList(rows, order)]))
  }

  *[Symbol.iterator](): Generator<Trade> {
    for (const index of this.#order) yield tradeOf(this.#rows.at(index))
  }
}

function compare(a: Merged, b: Merged): number {
  if (a.marketId !== b.marketId) return a.marketId < b.marketId ? -1 : 1
  if (a.id !== b.id) return a.id === null ? 1 : b.id === null || a.id < b.id ? -1 : 1
  if (a.price !== b.price) return a.price - b.price
  if (a.qty !== b.qty) return a.qty - b.qty
  if (a.aggressor !== b.aggressor) return a.aggressor < b.aggressor ? -1 : 1
  if (a.recvTs !== b.recvTs) return (a.recvTs ?? 0n) < (b.recvTs ?? 0n) ? -1 : 1
  return a.origin - b.origin
}

function tradeOf({ id: tradeId, origin, ts, recvTs, marketId, price, qty, aggressor, block }: Merged): Trade {
  return { ts, recvTs, marketId, tradeId, price, qty, aggressor, block, origin: TRADE_ORIGINS[origin]! }
}
