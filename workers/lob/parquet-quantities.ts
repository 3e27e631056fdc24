// The distinct quantities of one side of one row group, in order of first appearance. Every level of every row needs a lookup, so
// small quantities (nearly all) index a table, and the others an open-addressing hash. A Map would box doubles and cost more than
// all other work on a row.

import { grownInto } from '../output/grown-into.ts'
import type { CodeArray } from '../output/parquet-pages.ts'

const DIRECT_LIMIT = 1 << 16
const HASH_SLOTS_MIN = 1024
const TWO_POWER_32 = 0x1_0000_0000
const EMPTY_KEY = -1

export class QuantityDictionary {
  /** Code + 1 of each small quantity, or 0. */
  readonly #direct = new Int32Array(DIRECT_LIMIT)
  #values = new Float64Array(HASH_SLOTS_MIN)
  #size = 0
  #hashKeys = new Float64Array(HASH_SLOTS_MIN).fill(EMPTY_KEY)
  #hashCodes = new Uint32Array(HASH_SLOTS_MIN)
  #hashSize = 0

  /** The quantity of each code; only the first `size` entries are valid. */
  get values(): Float64Array {
    return this.#values
  }

  get size(): number {
    return this.#size
  }

  /**
   * Writes the codes of `quantities[0, count)` to `codes` from `start` on, and adds new quantities. Throws a RangeError if one is
   * negative or not a safe integer.
   */
  encode(quantities: Float64Array, count: number, codes: CodeArray, start: number): void {
    const direct = this.#direct
    const { low, high } = codes
    for (let i = 0; i < count; i++) {
      const quantity = quantities[i]!
      const small = quantity | 0
      let code = -1
      if (small === quantity && small >>> 0 < DIRECT_LIMIT) code = direct[small]! - 1
      if (code < 0) code = this.#slowCodeOf(quantity)
      low[start + i] = code
      high[start + i] = code >>> 16
    }
  }

  /** Removes all quantities and keeps the memory. */
  clear(): void {
    for (let i = 0; i < this.#size; i++) {
      const value = this.#values[i]!
      if (value < DIRECT_LIMIT) this.#direct[value] = 0
    }
    if (this.#hashSize > 0) this.#hashKeys.fill(EMPTY_KEY)
    this.#hashSize = 0
    this.#size = 0
  }

  #add(quantity: number): number {
    if (this.#size === this.#values.length)
      this.#values = grownInto(new Float64Array(2 * this.#size), this.#values)
    this.#values[this.#size] = quantity
    return this.#size++
  }

  /** The code of a quantity that is new, large or invalid. */
  #slowCodeOf(quantity: number): number {
    if (!Number.isSafeInteger(quantity) || quantity < 0)
      throw new RangeError(`quantity is not a whole number of contracts: ${quantity}`)
    if (quantity < DIRECT_LIMIT) {
      this.#direct[quantity] = this.#size + 1
      return this.#add(quantity)
    }
    const slot = slotOf(this.#hashKeys, quantity)
    if (this.#hashKeys[slot] === quantity) return this.#hashCodes[slot]!
    const code = this.#add(quantity)
    this.#hashKeys[slot] = quantity
    this.#hashCodes[slot] = code
    this.#hashSize++
    if (2 * this.#hashSize > this.#hashKeys.length) this.#growHash()
    return code
  }

  #growHash(): void {
    const keys = new Float64Array(2 * this.#hashKeys.length).fill(EMPTY_KEY)
    const codes = new Uint32Array(keys.length)
    for (let i = 0; i < this.#hashKeys.length; i++) {
      const key = this.#hashKeys[i]!
      if (key === EMPTY_KEY) continue
      const slot = slotOf(keys, key)
      keys[slot] = key
      codes[slot] = this.#hashCodes[i]!
    }
    this.#hashKeys = keys
    this.#hashCodes = codes
  }
}

/** The slot that has `quantity`, or the empty slot for it. The table is at most half full. */
function slotOf(keys: Float64Array, quantity: number): number {
  const mask = keys.length - 1
  const high = (quantity / TWO_POWER_32) | 0
  const mixed = Math.imul((quantity | 0) ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1)
  let slot = (mixed ^ (mixed >>> 15)) & mask
  while (keys[slot] !== EMPTY_KEY && keys[slot] !== quantity) slot = (slot + 1) & mask
  return slot
}
