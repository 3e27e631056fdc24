// The columns of snapshot rows, buffered until their row group is complete: typed arrays that grow geometrically and are reused
// for the next row group. Each column has its parquet schema and encodes itself; none depends on the file.

import type { SchemaElement } from 'hyparquet/src/types.js'
import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import { appendTimestampDeltas, DELTA_SPAN_S_MAX } from './parquet-delta.ts'
import type { BufferedColumn, ChunkPages, EncodedChunk, LeafColumn } from '../output/parquet-leaf.ts'
import { grownInto } from '../output/grown-into.ts'
import {
  appendByteCodes,
  appendCodes,
  appendDefinitionLevels,
  CodeArray,
  type PageBuffer,
} from '../output/parquet-pages.ts'

const ROWS_MIN = 256
/** The last whole second whose nanoseconds fit INT64. */
const TS_S_MAX = Math.floor(2 ** 63 / NS_PER_SECOND)

/** `ts`: INT64 nanoseconds, delta encoded. */
export class TimestampColumn implements BufferedColumn, LeafColumn {
  readonly path = ['ts']
  readonly type = 'INT64'
  readonly schema: readonly SchemaElement[] = [{ name: 'ts', type: 'INT64', repetition_type: 'REQUIRED' }]
  readonly leaves = [this]
  #seconds = new Float64Array(ROWS_MIN)
  #rows = 0

  append(tsSeconds: number): void {
    const rows = this.#rows
    const first = rows === 0 ? tsSeconds : this.#seconds[0]!
    const previous = rows === 0 ? 0 : this.#seconds[rows - 1]!
    if (!Number.isInteger(tsSeconds) || tsSeconds < previous || tsSeconds > TS_S_MAX)
      throw new RangeError(
        `ts is not a whole second at or after the previous row's: ${tsSeconds}, ${previous}`,
      )
    if (tsSeconds - first > DELTA_SPAN_S_MAX)
      throw new RangeError(`row group spans more than ${DELTA_SPAN_S_MAX} s: ${first} to ${tsSeconds}`)
    if (rows === this.#seconds.length) this.#seconds = grownInto(new Float64Array(2 * rows), this.#seconds)
    this.#seconds[rows] = tsSeconds
    this.#rows = rows + 1
  }

  encode(pages: ChunkPages): EncodedChunk {
    appendTimestampDeltas(pages.data, this.#seconds, this.#rows)
    return {
      valueCount: this.#rows,
      dictionaryCount: 0,
      encoding: 'DELTA_BINARY_PACKED',
      statistics: { min: nanoseconds(this.#seconds[0]!), max: nanoseconds(this.#seconds[this.#rows - 1]!) },
    }
  }

  clear(): void {
    this.#rows = 0
  }
}

function nanoseconds(seconds: number): bigint {
  return BigInt(seconds) * BigInt(NS_PER_SECOND)
}

/** `market_id`, or another column of few texts: UTF-8, with a dictionary of the texts that occur in the row group. */
export class MarketColumn implements BufferedColumn, LeafColumn {
  readonly path: readonly string[]
  readonly type = 'BYTE_ARRAY'
  readonly schema: readonly SchemaElement[]
  readonly leaves = [this]
  readonly #ids: readonly Buffer[]
  /** Code + 1 of each market in this row group, or 0. */
  readonly #codeOfMarket: Uint32Array
  readonly #marketOfCode: Uint32Array
  #used = 0
  readonly #codes = new CodeArray(ROWS_MIN)
  #rows = 0

  constructor(marketIds: readonly string[], name = 'market_id') {
    this.path = [name]
    this.schema = [
      {
        name,
        type: 'BYTE_ARRAY',
        repetition_type: 'REQUIRED',
        converted_type: 'UTF8',
        logical_type: { type: 'STRING' },
      },
    ]
    this.#ids = marketIds.map((id) => Buffer.from(id, 'utf8'))
    this.#codeOfMarket = new Uint32Array(marketIds.length)
    this.#marketOfCode = new Uint32Array(marketIds.length)
  }

  append(marketIndex: number): void {
    let code = this.#codeOfMarket[marketIndex]
    if (code === undefined) throw new RangeError(`no market ${marketIndex} among ${this.#ids.length}`)
    if (code === 0) {
      this.#marketOfCode[this.#used++] = marketIndex
      code = this.#used
      this.#codeOfMarket[marketIndex] = code
    }
    if (this.#rows === this.#codes.capacity) this.#codes.grow(0)
    this.#codes.low[this.#rows] = code - 1
    this.#codes.high[this.#rows++] = (code - 1) >>> 16
  }

  encode(pages: ChunkPages): EncodedChunk {
    let min = this.#ids[this.#marketOfCode[0]!]!
    let max = min
    for (let code = 0; code < this.#used; code++) {
      const id = this.#ids[this.#marketOfCode[code]!]!
      pages.dictionary.appendUint32(id.length)
      pages.dictionary.appendBytes(id)
      // Statistics are ordered by unsigned bytes; a comparison of JavaScript strings is not.
      if (id.compare(min) < 0) min = id
      if (id.compare(max) > 0) max = id
    }
    appendCodes(pages.data, this.#codes, this.#rows, this.#used)
    return {
      valueCount: this.#rows,
      dictionaryCount: this.#used,
      encoding: 'RLE_DICTIONARY',
      statistics: { min, max },
    }
  }

  clear(): void {
    for (let code = 0; code < this.#used; code++) this.#codeOfMarket[this.#marketOfCode[code]!] = 0
    this.#used = 0
    this.#rows = 0
  }
}

/** Maps a price column's values to one byte: value = code / `codesPerUnit` + `offset`. */
interface PriceCoding {
  readonly type: 'INT32' | 'DOUBLE'
  readonly codesPerUnit: number
  readonly offset: number
}

const PRICE_CODINGS = {
  best_bid: { type: 'INT32', codesPerUnit: 1, offset: 0 },
  best_ask: { type: 'INT32', codesPerUnit: 1, offset: 0 },
  // −1: not both sides have a level.
  spread: { type: 'INT32', codesPerUnit: 1, offset: -1 },
  // Half cents.
  mid: { type: 'DOUBLE', codesPerUnit: 2, offset: 0 },
} as const satisfies Record<string, PriceCoding>

/**
 * A column of prices in cents. It has at most 256 values, so each value is its own dictionary code (`PriceCoding`). Code 0 stands
 * for a value that the book does not have; in an optional column it is written as null.
 */
export class PriceColumn implements BufferedColumn, LeafColumn {
  readonly path: readonly string[]
  readonly type: 'INT32' | 'DOUBLE'
  readonly schema: readonly SchemaElement[]
  readonly leaves = [this]
  readonly #isOptional: boolean
  readonly #codesPerUnit: number
  readonly #offset: number
  #codes = new Uint8Array(ROWS_MIN)
  #rows = 0

  constructor(name: keyof typeof PRICE_CODINGS, isOptional: boolean) {
    const coding: PriceCoding = PRICE_CODINGS[name]
    this.path = [name]
    this.type = coding.type
    this.schema = [{ name, type: coding.type, repetition_type: isOptional ? 'OPTIONAL' : 'REQUIRED' }]
    this.#isOptional = isOptional
    this.#codesPerUnit = coding.codesPerUnit
    this.#offset = coding.offset
  }

  append(cents: number): void {
    const code = (cents - this.#offset) * this.#codesPerUnit
    if ((code & 0xff) !== code) throw new RangeError(`${this.path[0]} is not a price in cents: ${cents}`)
    if (this.#rows === this.#codes.length)
      this.#codes = grownInto(new Uint8Array(2 * this.#rows), this.#codes)
    this.#codes[this.#rows++] = code
  }

  encode(pages: ChunkPages): EncodedChunk {
    let codes = this.#codes.subarray(0, this.#rows)
    let nullCount = 0
    if (this.#isOptional) {
      const all = codes
      nullCount = appendDefinitionLevels(pages.data, this.#rows, (row) => all[row] === 0)
      codes = codes.filter((code) => code !== 0)
      // Without values no dictionary is written: readers differ on empty dictionary pages.
      if (codes.length === 0)
        return { valueCount: this.#rows, dictionaryCount: 0, nullCount, encoding: 'PLAIN' }
    }
    const { min, max } = rangeOf(codes, codes.length)
    for (let code = 0; code <= max; code++) this.#appendValue(pages.dictionary, this.#valueOf(code))
    appendByteCodes(pages.data, codes, codes.length)
    return {
      valueCount: this.#rows,
      dictionaryCount: max + 1,
      nullCount,
      encoding: 'RLE_DICTIONARY',
      // A minimum of zero is written as −0, as the format requires of doubles.
      statistics: { min: this.#valueOf(min) || -0, max: this.#valueOf(max) },
    }
  }

  clear(): void {
    this.#rows = 0
  }

  #valueOf(code: number): number {
    return code / this.#codesPerUnit + this.#offset
  }

  #appendValue(page: PageBuffer, value: number): void {
    if (this.type === 'DOUBLE') {
      const at = page.reserve(8)
      page.view.setFloat64(at, value, true)
    } else {
      page.appendUint32(value)
    }
  }
}

function rangeOf(codes: Uint8Array, count: number): { min: number; max: number } {
  let min = 0xff
  let max = 0
  for (let i = 0; i < count; i++) {
    const code = codes[i]!
    if (code < min) min = code
    if (code > max) max = code
  }
  return { min, max }
}
