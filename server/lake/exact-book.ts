// One market's known book in exact units, for the writers of the lake: they write it as a keyframe, and detect a level that falls
// below zero. It is not optimized for speed; the workers' book is.

import { EVENT_ADD, EVENT_CLEAR, EVENT_SET, SIDE_ASK, SIDE_BID } from '../../shared/lob-v1.ts'

export interface BookLevel {
  readonly side: number
  readonly price: number
  readonly qty: number
}

export class ExactBook {
  readonly #sides: readonly [Map<number, number>, Map<number, number>] = [new Map(), new Map()]

  /** A known book with these levels. */
  static of(levels: readonly BookLevel[]): ExactBook {
    const book = new ExactBook()
    for (const { side, price, qty } of levels) book.apply(EVENT_SET, side, price, qty)
    return book
  }

  /**
   * Applies `clear`, `set` or `add`. Returns false when a level would fall below zero or leave the safe integers: then the deltas
   * do not belong to this book, and the caller has to declare a gap.
   */
  apply(event: number, side: number, price: number, qty: number): boolean {
    if (event === EVENT_CLEAR) {
      for (const levels of this.#sides) levels.clear()
      return true
    }
    const levels = this.#side(side)
    const level = event === EVENT_ADD ? (levels.get(price) ?? 0) + qty : qty
    if (level < 0 || !Number.isSafeInteger(level)) return false
    if (level === 0) levels.delete(price)
    else levels.set(price, level)
    return true
  }

  /** The quantity at a price, 0 without a level. */
  quantity(side: number, price: number): number {
    return this.side(side).get(price) ?? 0
  }

  /** The quantities of a side by price, in no order. */
  side(side: number): ReadonlyMap<number, number> {
    return this.#side(side)
  }

  /** Whether both books have the same levels. */
  equals(other: ExactBook): boolean {
    return this.#sides.every((levels, side) => {
      const others = other.#sides[side]!
      return levels.size === others.size && [...levels].every(([price, qty]) => others.get(price) === qty)
    })
  }

  /** The levels in the order of a keyframe: bids, then asks, prices ascending. */
  levels(): BookLevel[] {
    return [SIDE_BID, SIDE_ASK].flatMap((side) =>
      [...this.side(side)].toSorted(([a], [b]) => a - b).map(([price, qty]) => ({ side, price, qty })),
    )
  }

  #side(side: number): Map<number, number> {
    return side === SIDE_BID ? this.#sides[0] : this.#sides[1]
  }
}
