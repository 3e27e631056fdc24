// One market's limit order book in whole cents, maintained from exact deltas. Prices are array indices. A side has an array of
// exact quantities, one of whole contracts, and a bitmap of the visible levels. Both sides share their code by orientation: an
// ask at price p is stored at 10,000 − p. So on both sides a higher index is a better price, and rounding to the cent is
// rounding down (contract.md 33: deltas are exact; 28: bids are rounded down and asks up).

import {
  EVENT_ADD,
  EVENT_CLEAR,
  EVENT_GAP,
  EVENT_SET,
  PRICE_UNITS_PER_CENT,
  PRICE_UNITS_PER_DOLLAR,
  QTY_UNITS_PER_CONTRACT,
  SIDE_ASK,
} from '../../shared/lob-v1.ts'

export const CENTS_PER_DOLLAR = 100
// V8 looks up imported names at every use, but compiles constants of this module into the loop and turns division by them into
// multiplication.
const UNITS_PER_CENT = PRICE_UNITS_PER_CENT
const UNITS_PER_DOLLAR = PRICE_UNITS_PER_DOLLAR
const UNITS_PER_CONTRACT = QTY_UNITS_PER_CONTRACT
const [SET, ADD, CLEAR, GAP, ASK] = [EVENT_SET, EVENT_ADD, EVENT_CLEAR, EVENT_GAP, SIDE_ASK]
const CENT_SLOTS = CENTS_PER_DOLLAR + 1
const EXACT_SLOTS = UNITS_PER_DOLLAR + 1

/**
 * Columns of book events in replay order. `ts` is ns after the file's UTC midnight (exact in a double), `price` counts
 * 1/10000 dollar, `qty` 1/1000000 contract.
 */
export interface EventColumns {
  readonly length: number
  readonly ts: Float64Array
  readonly event: Uint8Array
  readonly side: Uint8Array
  readonly price: Int32Array
  readonly qty: Float64Array
}

export function emptyEvents(length: number): EventColumns {
  return {
    length,
    ts: new Float64Array(length),
    event: new Uint8Array(length),
    side: new Uint8Array(length),
    price: new Int32Array(length),
    qty: new Float64Array(length),
  }
}

/** One side of the book, oriented: slot 1 … 99 is the price of a bid in cents, or 100 minus the price of an ask. */
export class BookSide {
  /** Exact quantity by cent. */
  readonly #cents = new Float64Array(CENT_SLOTS)
  /** Whole contracts by cent; 0 if the level is not visible. */
  readonly contracts = new Float64Array(CENT_SLOTS)
  /** Bit i of the 128 is set if `contracts[i]` is not 0. */
  readonly bits = new Int32Array(4)
  // Exact quantity by 1/10000 dollar, allocated at the first price off the cent grid: `set` needs the quantity that it replaces.
  #exact: Float64Array | null = null
  readonly #touchedExact = new Set<number>()
  /** Changes below this slot do not affect the last row that was taken. */
  shownFrom = 0

  clear(): void {
    this.#cents.fill(0)
    this.contracts.fill(0)
    this.bits.fill(0)
    this.shownFrom = 0
    if (this.#exact === null) return
    for (const slot of this.#touchedExact) this.#exact[slot] = 0
    this.#touchedExact.clear()
  }

  /** Changes a level. Returns whether the last row that was taken would be different now. */
  apply(isSet: boolean, orientedPrice: number, qty: number): boolean {
    const cent = (orientedPrice / UNITS_PER_CENT) | 0
    const cents = this.#cents
    let exact: number
    if (this.#exact === null && orientedPrice === cent * UNITS_PER_CENT) {
      exact = isSet ? qty : cents[cent]! + qty
    } else exact = cents[cent]! + this.#applyExact(isSet, orientedPrice, qty)
    cents[cent] = exact
    const shown = Math.max(Math.floor(exact / UNITS_PER_CONTRACT), 0)
    if (shown === this.contracts[cent]) return false
    if (cent === 0 || cent === CENTS_PER_DOLLAR) return false
    this.contracts[cent] = shown
    // No branch: it would be mispredicted.
    const bit = 1 << (cent & 31)
    const word = cent >>> 5
    this.bits[word] = (this.bits[word]! & ~bit) | (bit & -Number(shown !== 0))
    return cent >= this.shownFrom
  }

  /** Changes a level on the exact grid and returns the difference. */
  #applyExact(isSet: boolean, orientedPrice: number, qty: number): number {
    const exact = (this.#exact ??= this.#exactFromCents())
    const before = exact[orientedPrice]!
    const after = isSet ? qty : before + qty
    if (before === 0 && after !== 0) this.#touchedExact.add(orientedPrice)
    exact[orientedPrice] = after
    return after - before
  }

  #exactFromCents(): Float64Array {
    const exact = new Float64Array(EXACT_SLOTS)
    for (let cent = 0; cent < CENT_SLOTS; cent++) {
      if (this.#cents[cent] === 0) continue
      exact[cent * UNITS_PER_CENT] = this.#cents[cent]!
      this.#touchedExact.add(cent * UNITS_PER_CENT)
    }
    return exact
  }

  /** The best slot with a visible level; 0 if there is none. */
  bestSlot(): number {
    const { bits } = this
    for (let word = 3; word >= 0; word--) {
      if (bits[word] !== 0) return (word << 5) | (31 - Math.clz32(bits[word]!))
    }
    return 0
  }

  /**
   * Writes the best `levels` levels, best first, as slots and whole contracts, and returns their number. Sets `shownFrom`: later
   * changes beyond the last level taken do not affect the row.
   */
  takeTop(levels: number, slots: Uint8Array, contracts: Float64Array): number {
    let count = 0
    let slot = 0
    for (let word = 3; word >= 0 && count < levels; word--) {
      let bits = this.bits[word]!
      while (bits !== 0 && count < levels) {
        const bit = 31 - Math.clz32(bits)
        bits ^= 1 << bit
        slot = (word << 5) | bit
        slots[count] = slot
        contracts[count] = this.contracts[slot]!
        count++
      }
    }
    this.shownFrom = count === levels ? slot : 0
    return count
  }
}

/** A market's book with both sides. Unknown until its first `clear`, and again after a `gap`. */
export class OrderBook {
  readonly bids = new BookSide()
  readonly asks = new BookSide()
  isKnown = false
  /** The book comes from the file of an earlier date, and the present file has not cleared or lost it yet. */
  isCarried = false
  /** Whether a lost book keeps its levels until the next `clear`. */
  isHeldInGaps = false
  /** Whether the last row that was taken may be different now. */
  isChanged = true

  /** The highest bid in cents; 0 if there is none. */
  bestBid(): number {
    return this.bids.bestSlot()
  }

  /** The lowest ask in cents; 0 if there is none. */
  bestAsk(): number {
    const slot = this.asks.bestSlot()
    return slot === 0 ? 0 : CENTS_PER_DOLLAR - slot
  }

  /** Clears both sides; the book is unknown until the next `clear` event. */
  forget(): void {
    this.isKnown = false
    this.isChanged = true
    this.bids.clear()
    this.asks.clear()
  }

  /**
   * Applies `events` from index `from` while their ts is at or before `until`. Returns the index of the first later event. While
   * the book is unknown, `set` and `add` are ignored.
   */
  replay(events: EventColumns, from: number, until: number): number {
    const { length, ts, event, side, price, qty } = events
    const { bids, asks } = this
    let index = from
    for (; index < length && ts[index]! <= until; index++) {
      const kind = event[index]!
      if (kind === SET || kind === ADD) {
        if (!this.isKnown) continue
        const isChanged =
          side[index] === ASK
            ? asks.apply(kind === SET, UNITS_PER_DOLLAR - price[index]!, qty[index]!)
            : bids.apply(kind === SET, price[index]!, qty[index]!)
        if (isChanged) this.isChanged = true
      } else if (kind === CLEAR || kind === GAP) {
        if (kind === CLEAR || !this.isHeldInGaps) this.forget()
        this.isKnown = kind === CLEAR
        this.isChanged = true
        this.isCarried = false
      }
    }
    return index
  }
}
