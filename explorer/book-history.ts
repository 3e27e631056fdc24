// The books of one market at every tick of a response: one shade and one quantity for each tick and price. Typed arrays
// instead of rows make a day of seconds fit. They are allocated piece by piece as rows arrive.

import type { Snapshot } from '../clients/typescript/bookcast.ts'
import { NS_PER_SECOND } from '../shared/utc-date.ts'
import { quantityCode } from './quantity-scale.ts'

export const PRICES = 100
const PIECE_TICKS = 4_096
const QUANTITY_MAX = 2 ** 31 - 1

const NO_ROW = 0
const EMPTY = 1
const KNOWN = 2

export interface Level {
  readonly price: number
  readonly qty: number
}

export interface Ladder {
  /** High to low. */
  readonly bids: readonly Level[]
  /** Low to high. */
  readonly asks: readonly Level[]
}

interface Piece {
  readonly codes: Uint8Array
  /** Contracts; those of bids are negative. */
  readonly quantities: Int32Array
}

export class BookHistory {
  readonly fromMs: number
  readonly intervalMs: number
  readonly tickCount: number
  /** Rows taken so far. */
  rows = 0
  /** The tick after the last row. */
  endTick = 0
  largestCode = 1
  readonly bestBids: Uint8Array
  readonly bestAsks: Uint8Array
  readonly #states: Uint8Array
  readonly #pieces: (Piece | undefined)[] = []
  /** Asks at a price that also has a bid (crossed book), and quantities that do not fit into an Int32Array. */
  readonly #others = new Map<number, number>()

  constructor(fromMs: number, spanMs: number, intervalMs: number) {
    this.fromMs = fromMs
    this.intervalMs = intervalMs
    this.tickCount = Math.ceil(spanMs / intervalMs)
    this.bestBids = new Uint8Array(this.tickCount)
    this.bestAsks = new Uint8Array(this.tickCount)
    this.#states = new Uint8Array(this.tickCount)
  }

  get toMs(): number {
    return this.fromMs + this.tickCount * this.intervalMs
  }

  /** Adds rows in any order; rows outside of the span are ignored. */
  add(snapshots: readonly Snapshot[]): void {
    for (const { ts, best_bid: bid, best_ask: ask, bids, asks } of snapshots) {
      this.rows += 1
      const tick = Math.round((ts / (NS_PER_SECOND / 1000) - this.fromMs) / this.intervalMs)
      if (tick < 0 || tick >= this.tickCount) continue
      this.endTick = Math.max(this.endTick, tick + 1)
      this.bestBids[tick] = bid
      this.bestAsks[tick] = ask
      this.#states[tick] = bid === 0 && ask === 0 ? EMPTY : KNOWN
      for (const { price, qty } of bids) this.#put(tick, price, -qty)
      for (const { price, qty } of asks) this.#put(tick, price, qty)
    }
  }

  hasRow(tick: number): boolean {
    return (this.#states[tick] ?? NO_ROW) !== NO_ROW
  }

  /** Whether the tick has a book. A row without levels means that the book is empty or unknown. */
  isKnown(tick: number): boolean {
    return this.#states[tick] === KNOWN
  }

  timeOf(tick: number): number {
    return this.fromMs + tick * this.intervalMs
  }

  /** The tick whose book is valid at an instant. */
  tickAt(ms: number): number {
    return Math.min(this.tickCount - 1, Math.max(0, Math.floor((ms - this.fromMs) / this.intervalMs)))
  }

  /** The array of a tick's shades, by price from 0, and the tick's offset in it; undefined if no level was added there. */
  codesAt(tick: number): { readonly codes: Uint8Array; readonly offset: number } | undefined {
    const piece = this.#pieces[Math.floor(tick / PIECE_TICKS)]
    return piece && { codes: piece.codes, offset: (tick % PIECE_TICKS) * PRICES }
  }

  /** The exact book at a tick. */
  ladderAt(tick: number): Ladder {
    const piece = this.#pieces[Math.floor(tick / PIECE_TICKS)]
    const bids: Level[] = []
    const asks: Level[] = []
    for (let price = 0; price < PRICES; price += 1) {
      const kept = piece?.quantities[(tick % PIECE_TICKS) * PRICES + price] ?? 0
      const other = this.#others.get(tick * PRICES + price)
      if (kept < 0) bids.unshift({ price, qty: -kept })
      else if (kept > 0) asks.push({ price, qty: kept })
      if (other !== undefined && other < 0) bids.unshift({ price, qty: -other })
      else if (other !== undefined) asks.push({ price, qty: other })
    }
    return { bids, asks }
  }

  #put(tick: number, price: number, quantity: number): void {
    if (price < 0 || price >= PRICES) return
    const piece = (this.#pieces[Math.floor(tick / PIECE_TICKS)] ??= {
      codes: new Uint8Array(PIECE_TICKS * PRICES),
      quantities: new Int32Array(PIECE_TICKS * PRICES),
    })
    const at = (tick % PIECE_TICKS) * PRICES + price
    const code = Math.max(piece.codes[at] ?? 0, quantityCode(Math.abs(quantity)))
    piece.codes[at] = code
    if (code > this.largestCode) this.largestCode = code
    if (piece.quantities[at] !== 0 || Math.abs(quantity) > QUANTITY_MAX)
      this.#others.set(tick * PRICES + price, quantity)
    else piece.quantities[at] = quantity
  }
}
