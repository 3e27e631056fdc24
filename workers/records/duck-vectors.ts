// Copies the values of DuckDB's vectors in bulk. The library returns them one by one and tests a bitmap of BigInts for each,
// which takes longer than all other work on a long answer. This module reads the memory of the vector: numbers side by side,
// nulls as cleared bits, and 16 bytes for a text: its length, then the text if it has at most 12 bytes, else a pointer. Long
// texts usually lie one after the other.
// Source: https://duckdb.org/docs/stable/internals/vector

import type { DuckDBVector } from '@duckdb/node-api'
import bindings from '@duckdb/node-bindings'

const TWO_POWER_32 = 0x1_0000_0000
const TEXT_BYTES = 16
/** Texts up to this length are stored in the vector itself. */
const INLINE_BYTES_MAX = 12
const POINTER_OFFSET = 8

/** The members of the library's vectors that its types do not show. Vectors of numbers have `items`, those of texts `dataView`. */
interface VectorMemory {
  readonly items: Float64Array | Float32Array | Int32Array | Int16Array | BigInt64Array | undefined
  readonly dataView: DataView
  /** One bit per row, clear for a null; no data if no row is null. */
  readonly validity: { readonly data: BigUint64Array | null }
}

function memoryOf(vector: DuckDBVector): VectorMemory {
  return vector as unknown as VectorMemory
}

/** Copies integers of up to 64 bits, or doubles, as doubles. A null becomes NaN. Integers beyond 2^53 are rounded. */
export function copyNumbers(vector: DuckDBVector, target: Float64Array, start: number): void {
  const { items } = memoryOf(vector)
  if (items === undefined) throw new Error('a column is not of numbers')
  if (!(items instanceof BigInt64Array)) target.set(items, start)
  else {
    const words = new Int32Array(items.buffer, items.byteOffset, 2 * items.length)
    for (let row = 0; row < items.length; row++)
      target[start + row] = words[2 * row + 1]! * TWO_POWER_32 + (words[2 * row]! >>> 0)
  }
  const validity = validityOf(vector)
  if (validity === null) return
  for (let row = 0; row < items.length; row++)
    if ((validity[row >>> 3]! & (1 << (row & 7))) === 0) target[start + row] = Number.NaN
}

/** Copies integers of 64 bits; a null becomes -1. */
export function copyNanoseconds(vector: DuckDBVector, target: BigInt64Array): BigInt64Array {
  const { items } = memoryOf(vector)
  if (!(items instanceof BigInt64Array)) throw new Error('a column is not of 64-bit integers')
  target.set(items.subarray(0, target.length))
  const validity = validityOf(vector)
  if (validity === null) return target
  for (let row = 0; row < target.length; row++)
    if ((validity[row >>> 3]! & (1 << (row & 7))) === 0) target[row] = -1n
  return target
}

/** Null if no row is null. */
function validityOf(vector: DuckDBVector): Uint8Array | null {
  const { data } = memoryOf(vector).validity
  return data && new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
}

/** The texts of a vector. Valid until the next chunk of the result is fetched. */
export class TextVector {
  readonly length: number
  readonly #vector: DuckDBVector
  readonly #start: number
  readonly view: DataView
  readonly #validity: Uint8Array | null
  #longs: LongTexts | undefined

  constructor(vector: DuckDBVector, start = 0, stop = vector.itemCount) {
    this.#vector = vector
    this.#start = start
    this.length = stop - start
    this.view = memoryOf(vector).dataView
    this.#validity = validityOf(vector)
  }

  /** The texts that are stored outside the vector. */
  get longs(): LongTexts {
    this.#longs ??= longTexts(this.view, (row) => this.inlineAt(row) === -1, this.#start, this.length)
    return this.#longs
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
   * The position in `view` of a text that is stored in the vector; its length, 32 bits, stands before it. -1 for a longer
   * text (see `at`, `longs`), -2 for a null.
   */
  inlineAt(row: number): number {
    const index = this.#start + row
    if (this.#validity !== null && (this.#validity[index >>> 3]! & (1 << (index & 7))) === 0) return -2
    const at = index * TEXT_BYTES
    return this.view.getUint32(at, true) <= INLINE_BYTES_MAX ? at + 4 : -1
  }
}

/** The long texts of some rows: their bytes, and the range of each row. */
export interface LongTexts {
  readonly bytes: Buffer
  /** By row; undefined content for rows without a long text. */
  readonly starts: Int32Array
  readonly ends: Int32Array
  /** The number of contiguous copies. */
  readonly stretches: number
}

/**
 * Texts at most this far apart are copied together with the bytes between them: texts of other columns (of sorted rows), or
 * lengths (in a page). It is less than the smallest memory page, so all bytes between two readable texts are readable.
 */
const SKIPPED_BYTES_MAX = 1024

/** Copies neighbouring texts in one call: a call per text would take longer than all other work on it. */
function longTexts(
  view: DataView,
  isLong: (row: number) => boolean,
  firstIndex: number,
  rows: number,
): LongTexts {
  const starts = new Int32Array(rows)
  const ends = new Int32Array(rows)
  const runs: { readonly pointerAt: number; sizeBytes: number }[] = []
  let sizeBytes = 0
  let run = { pointerAt: 0, sizeBytes: 0 }
  let runEndLow = -1
  let runEndHigh = -1
  for (let row = 0; row < rows; row++) {
    if (!isLong(row)) continue
    const at = (firstIndex + row) * TEXT_BYTES
    const length = view.getUint32(at, true)
    const low = view.getUint32(at + POINTER_OFFSET, true)
    const high = view.getUint32(at + POINTER_OFFSET + 4, true)
    const skipped = high === runEndHigh && runs.length > 0 ? low - runEndLow : -1
    if (skipped < 0 || skipped > SKIPPED_BYTES_MAX) {
      run = { pointerAt: view.byteOffset + at + POINTER_OFFSET, sizeBytes: 0 }
      runs.push(run)
    } else {
      run.sizeBytes += skipped
      sizeBytes += skipped
    }
    run.sizeBytes += length
    // A run that crosses a multiple of 2^32 is split.
    runEndLow = low + length
    runEndHigh = high
    starts[row] = sizeBytes
    sizeBytes += length
    ends[row] = sizeBytes
  }
  const bytes = Buffer.allocUnsafe(sizeBytes)
  let end = 0
  for (const { pointerAt, sizeBytes: runBytes } of runs) {
    bytes.set(bindings.get_data_from_pointer(view.buffer as ArrayBuffer, pointerAt, runBytes), end)
    end += runBytes
  }
  return { bytes, starts, ends, stretches: runs.length }
}
