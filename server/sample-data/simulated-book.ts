// One market's simulated book: two sides of price levels around a fair price that the caller sets. Every step changes one level, as
// an exchange would report it, and the book is never crossed. Quantity that leaves the best level was traded; quantity that leaves
// another level was withdrawn. Single orders are not modelled.

import {
  EVENT_ADD,
  EVENT_SET,
  PRICE_UNITS_PER_CENT,
  PRICE_UNITS_PER_DOLLAR,
  QTY_UNITS_PER_CONTRACT,
  SIDE_ASK,
  SIDE_BID,
} from '../../shared/lob-v1.ts'
import { type BookLevel, ExactBook } from '../lake/exact-book.ts'
import type { SeededRandom } from './seeded-random.ts'

/** One changed level: `qty` is its new quantity, `delta` the difference from before (both 1e-6 contract). */
export interface LevelChange {
  readonly side: number
  readonly price: number
  readonly qty: number
  readonly delta: number
  readonly isTrade: boolean
}

export interface SimulatedBookOptions {
  readonly random: SeededRandom
  /** Distance between levels (1/10000 dollar) at a fair price. */
  readonly tickAt: (fair: number) => number
  /** Distance from the fair price to either best level, in 1/10000 dollar. */
  readonly halfSpread: number
  /** Ticks from the best level within which orders are placed. */
  readonly depth: number
  /** A new order's size in 1e-6 contract. */
  readonly orderQty: (random: SeededRandom) => number
}

// A level above this many contracts is only reduced, so that sizes stay realistic.
const LEVEL_QTY_MAX = 20_000 * QTY_UNITS_PER_CONTRACT
// A side with this many levels loses its worst one before it gets another.
const SIDE_LEVELS_MAX = 30
// A level that the fair price has passed by more than this is swept; otherwise it goes in time.
const JUMP = 5 * PRICE_UNITS_PER_CENT

export class SimulatedBook {
  readonly #options: SimulatedBookOptions
  readonly #book = new ExactBook()

  constructor(options: SimulatedBookOptions) {
    this.#options = options
  }

  /** Changes one level, with priority for those that the fair price has moved past. */
  step(fair: number): LevelChange {
    const { random, halfSpread } = this.#options
    const tick = this.#options.tickAt(fair)
    const bidTop = Math.floor((fair - halfSpread) / tick) * tick
    const askTop = Math.ceil((fair + halfSpread) / tick) * tick
    const bestBid = this.#extreme(SIDE_BID, 1)
    const bestAsk = this.#extreme(SIDE_ASK, 1)
    if (bestBid !== undefined && bestBid > bidTop) return this.#takeFrom(SIDE_BID, bestBid, 0.75)
    if (bestAsk !== undefined && bestAsk < askTop) return this.#takeFrom(SIDE_ASK, bestAsk, 0.75)
    if (isPrice(bidTop) && (bestBid === undefined || bestBid < bidTop) && random.isWithin(0.5)) {
      return this.#place(SIDE_BID, bidTop)
    }
    if (isPrice(askTop) && (bestAsk === undefined || bestAsk > askTop) && random.isWithin(0.5)) {
      return this.#place(SIDE_ASK, askTop)
    }
    return this.#restingChange(bidTop, askTop, tick)
  }

  /** Whether the fair price has jumped past a level. */
  isBehind(fair: number): boolean {
    const bestBid = this.#extreme(SIDE_BID, 1) ?? fair
    const bestAsk = this.#extreme(SIDE_ASK, 1) ?? fair
    return bestBid > fair + JUMP || bestAsk < fair - JUMP
  }

  /** All levels, bids before asks, each from the lowest price. */
  levels(): BookLevel[] {
    return this.#book.levels()
  }

  /** Fills an empty book as if it had been traded for a while. */
  settle(fair: number, steps: number): void {
    for (let index = 0; index < steps; index += 1) this.step(fair)
  }

  /** An order placed or withdrawn somewhere behind the best level; more often near it. */
  #restingChange(bidTop: number, askTop: number, tick: number): LevelChange {
    const { random, depth } = this.#options
    const wanted = random.isWithin(0.5) ? SIDE_BID : SIDE_ASK
    const top = wanted === SIDE_BID ? bidTop : askTop
    // Near the price limits one side has no room; the other one always has.
    const side = isPrice(top) ? wanted : SIDE_BID + SIDE_ASK - wanted
    const distance = Math.floor(depth * random.unit() * random.unit()) * tick
    const price = side === SIDE_BID ? Math.max(bidTop - distance, tick) : askTop + distance
    const inside = side === SIDE_BID ? price : Math.min(price, PRICE_UNITS_PER_DOLLAR - tick)
    const held = this.#book.quantity(side, inside)
    if (held === 0) return this.#place(side, inside)
    if (held > LEVEL_QTY_MAX || random.isWithin(0.48)) return this.#takeFrom(side, inside, 0.12)
    return this.#addTo(side, inside)
  }

  /** A new order; a full side loses its worst level instead. */
  #place(side: number, price: number): LevelChange {
    const levels = this.#book.side(side)
    const isFull = levels.size >= SIDE_LEVELS_MAX && !levels.has(price)
    const worst = isFull ? this.#extreme(side, -1) : undefined
    return worst === undefined ? this.#addTo(side, price) : this.#takeFrom(side, worst, 1)
  }

  #addTo(side: number, price: number): LevelChange {
    const delta = this.#options.orderQty(this.#options.random)
    this.#book.apply(EVENT_ADD, side, price, delta)
    return { side, price, qty: this.#book.quantity(side, price), delta, isTrade: false }
  }

  /** Withdraws the whole level with the given probability, otherwise about half of it. */
  #takeFrom(side: number, price: number, wholeProbability: number): LevelChange {
    const held = this.#book.quantity(side, price)
    const isTrade = price === this.#extreme(side, 1)
    const half = Math.floor(held / (2 * QTY_UNITS_PER_CONTRACT)) * QTY_UNITS_PER_CONTRACT
    const isWhole = half === 0 || this.#options.random.isWithin(wholeProbability)
    const qty = isWhole ? 0 : held - half
    this.#book.apply(EVENT_SET, side, price, qty)
    return { side, price, qty, delta: qty - held, isTrade }
  }

  /** The best (`direction` 1) or the worst (−1) price of a side, if it has levels. */
  #extreme(side: number, direction: 1 | -1): number | undefined {
    const sign = side === SIDE_BID ? direction : -direction
    let extreme: number | undefined
    for (const price of this.#book.side(side).keys()) {
      if (extreme === undefined || (price - extreme) * sign > 0) extreme = price
    }
    return extreme
  }
}

function isPrice(price: number): boolean {
  return price > 0 && price < PRICE_UNITS_PER_DOLLAR
}

/** Whole cents everywhere: Kalshi's `linear_cent`. */
export function linearCentTick(): number {
  return PRICE_UNITS_PER_CENT
}

/** A tenth of a cent everywhere: Kalshi's `deci_cent`. */
export function deciCentTick(): number {
  return PRICE_UNITS_PER_CENT / 10
}

/** Polymarket's tick: a tenth of a cent below 4 and above 96 cents, else a cent. */
export function tailTick(fair: number): number {
  const isTail = fair < 4 * PRICE_UNITS_PER_CENT || fair > 96 * PRICE_UNITS_PER_CENT
  return isTail ? PRICE_UNITS_PER_CENT / 10 : PRICE_UNITS_PER_CENT
}
