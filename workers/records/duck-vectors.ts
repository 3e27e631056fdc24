// The values of DuckDB's vectors many at a time. Its library gives them one by one, each with a look at a bitmap of big
// integers, which takes longer than everything else about a long answer. Underneath a vector lies as DuckDB has it:
// numbers side by side, nulls as cleared bits, texts as sixteen bytes of length and, up to twelve bytes, the text.
// Source: https://duckdb.org/docs/stable/internals/vector. Where the library hides something it is asked value by value.

import { type DuckDBVector } from '@duckdb/node-api'

const TWO_POWER_32 = 0x1_0000_0000
const TEXT_BYTES = 16
/** Bytes of the longest text that stands in the vector itself. */
const INLINE_BYTES_MAX = 12

/**
 * Copies integers of up to 64 bits or doubles, as doubles. Of a null the query must have made NaN already. Integers
 * beyond 2^53 are rounded.
 */
export function copyNumbers(vector: DuckDBVector, target: Float64Array, start: number): void {
  const items: unknown = Reflect.get(vector, 'items')
  if (items instanceof Float64Array || items instanceof Int32Array) {
    target.set(items, start)
    return
  }
  if (items instanceof BigInt64Array) {
    const words = new Int32Array(items.buffer, items.byteOffset, 2 * items.length)
    for (let row = 0; row < items.length; row++)
      target[start + row] = words[2 * row + 1]! * TWO_POWER_32 + (words[2 * row]! >>> 0)
    return
  }
  for (let row = 0; row < vector.itemCount; row++) {
    const value = vector.getItem(row)
    if (value === null) target[start + row] = Number.NaN
    else if (typeof value === 'number' || typeof value === 'bigint') target[start + row] = Number(value)
    else throw new Error('a column is not of numbers')
  }
}

/** Texts of a vector, valid until the next chunk of its result is fetched. */
export class TextVector {
  readonly length: number
  readonly #vector: DuckDBVector
  readonly #start: number
  /** Undefined where it is not known how the texts lie. */
  readonly #view: DataView | undefined
  readonly #validity: Uint8Array | undefined

  constructor(vector: DuckDBVector, start = 0, stop = vector.itemCount) {
    this.#vector = vector
    this.#start = start
    this.length = stop - start
    const view: unknown = Reflect.get(vector, 'dataView')
    const validity: unknown = Reflect.get(vector, 'validity')
    const bits: unknown = validity instanceof Object ? Reflect.get(validity, 'data') : undefined
    const isKnown = view instanceof DataView && (bits === null || bits instanceof BigUint64Array)
    this.#view = isKnown ? view : undefined
    this.#validity =
      isKnown && bits !== null ? new Uint8Array(bits.buffer, bits.byteOffset, bits.byteLength) : undefined
  }

  slice(from: number, to: number): TextVector {
    return new TextVector(this.#vector, this.#start + from, this.#start + to)
  }

  at(row: number): string | null {
    const text = this.#vector.getItem(this.#start + row)
    if (text !== null && typeof text !== 'string') throw new Error('a column is not of texts')
    return text
  }

  /**
   * The bytes of a text that stands in the vector: where it begins in `inlineView`, behind its length as 32 bits. -1 for
   * a longer one, which only `at` gives, and -2 for a null.
   */
  inlineAt(row: number): number {
    const index = this.#start + row
    if (this.#view === undefined) return this.#vector.getItem(index) === null ? -2 : -1
    if (this.#validity !== undefined && (this.#validity[index >>> 3]! & (1 << (index & 7))) === 0) return -2
    const at = index * TEXT_BYTES
    return this.#view.getUint32(at, true) <= INLINE_BYTES_MAX ? at + 4 : -1
  }

  get inlineView(): DataView | undefined {
    return this.#view
  }
}
