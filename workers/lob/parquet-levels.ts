// One side of the book as a parquet column: a required LIST of required STRUCT<price INT32, qty INT64>, two leaves with the same
// repetition and definition levels. Prices are their own dictionary codes. Quantities have a dictionary per row group, since most
// levels of a book stay unchanged from tick to tick.

import type { SchemaElement } from 'hyparquet/src/types.js'
import type { BufferedColumn, ChunkPages, EncodedChunk, LeafColumn } from '../output/parquet-leaf.ts'
import { grownInto } from '../output/grown-into.ts'
import {
  appendByteCodes,
  appendCodes,
  appendListLevels,
  appendPlainInt64,
  CodeArray,
  codeWidthBytes,
  PageBuffer,
  setSafeInteger,
} from '../output/parquet-pages.ts'
import { QuantityDictionary } from './parquet-quantities.ts'

const ROWS_MIN = 256
const VALUES_MIN = 1024
const INT64_BYTES = 8

export class LevelListColumn implements BufferedColumn {
  readonly schema: readonly SchemaElement[]
  readonly leaves: readonly LeafColumn[]
  readonly #name: string
  readonly #levelsMax: number
  readonly #quantities = new QuantityDictionary()
  /** The encoded levels of the row group, made once: both leaves begin with them. */
  readonly #levels = new PageBuffer()
  #rowLengths = new Uint8Array(ROWS_MIN)
  #prices = new Uint8Array(VALUES_MIN)
  readonly #quantityCodes = new CodeArray(VALUES_MIN)
  #rows = 0
  #emptyRows = 0
  #values = 0
  /** The union of the bits of all prices: an upper bound, since prices may be unsorted or invalid. */
  #priceBits = 0

  constructor(name: 'bids' | 'asks', levelsMax: number) {
    this.#name = name
    this.#levelsMax = levelsMax
    this.schema = [
      {
        name,
        repetition_type: 'REQUIRED',
        num_children: 1,
        converted_type: 'LIST',
        logical_type: { type: 'LIST' },
      },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', repetition_type: 'REQUIRED', num_children: 2 },
      { name: 'price', type: 'INT32', repetition_type: 'REQUIRED' },
      { name: 'qty', type: 'INT64', repetition_type: 'REQUIRED' },
    ]
    this.leaves = [
      {
        path: [name, 'list', 'element', 'price'],
        type: 'INT32',
        encode: (pages) => this.#encodePrices(pages),
      },
      {
        path: [name, 'list', 'element', 'qty'],
        type: 'INT64',
        encode: (pages) => this.#encodeQuantities(pages),
      },
    ]
  }

  append(count: number, prices: Uint8Array, quantities: Float64Array): void {
    if (!(count >= 0 && count <= this.#levelsMax && count <= prices.length && count <= quantities.length))
      throw new RangeError(
        `${this.#name} cannot have ${count} levels; at most ${this.#levelsMax} were announced`,
      )
    const start = this.#values
    const end = start + count
    if (this.#rows === this.#rowLengths.length)
      this.#rowLengths = grownInto(new Uint8Array(2 * this.#rows), this.#rowLengths)
    if (end > this.#prices.length) {
      this.#prices = grownInto(new Uint8Array(Math.max(end, 2 * this.#prices.length)), this.#prices)
      this.#quantityCodes.grow(this.#prices.length)
    }
    this.#quantities.encode(quantities, count, this.#quantityCodes, start)
    const ownPrices = this.#prices
    let priceBits = this.#priceBits
    for (let i = 0; i < count; i++) {
      const price = prices[i]!
      priceBits |= price
      ownPrices[start + i] = price
    }
    this.#priceBits = priceBits
    this.#values = end
    this.#rowLengths[this.#rows++] = count
    if (count === 0) this.#emptyRows++
  }

  clear(): void {
    this.#quantities.clear()
    this.#levels.clear()
    this.#rows = 0
    this.#emptyRows = 0
    this.#values = 0
    this.#priceBits = 0
  }

  #encodePrices(pages: ChunkPages): EncodedChunk {
    const entries = this.#appendLevels(pages)
    const dictionaryCount = this.#values === 0 ? 0 : 2 ** (32 - Math.clz32(this.#priceBits))
    // Without values no dictionary is written: readers differ on empty dictionary pages.
    if (dictionaryCount === 0) return { valueCount: entries, dictionaryCount, encoding: 'PLAIN' }
    for (let price = 0; price < dictionaryCount; price++) pages.dictionary.appendUint32(price)
    appendByteCodes(pages.data, this.#prices, this.#values)
    return { valueCount: entries, dictionaryCount, encoding: 'RLE_DICTIONARY' }
  }

  #encodeQuantities(pages: ChunkPages): EncodedChunk {
    const entries = this.#appendLevels(pages)
    const values = this.#quantities.values
    const distinct = this.#quantities.size
    const dictionarySize = distinct * INT64_BYTES + this.#values * codeWidthBytes(distinct)
    if (dictionarySize > this.#values * INT64_BYTES || distinct === 0) {
      appendPlainInt64(pages.data, values, this.#quantityCodes, this.#values)
      return { valueCount: entries, dictionaryCount: 0, encoding: 'PLAIN' }
    }
    const start = pages.dictionary.reserve(distinct * INT64_BYTES)
    const view = pages.dictionary.view
    for (let code = 0; code < distinct; code++)
      setSafeInteger(view, start + code * INT64_BYTES, values[code]!)
    appendCodes(pages.data, this.#quantityCodes, this.#values, distinct)
    return { valueCount: entries, dictionaryCount: distinct, encoding: 'RLE_DICTIONARY' }
  }

  /** Appends the levels, which the first call encodes. Returns the number of entries: one per level and per empty row. */
  #appendLevels(pages: ChunkPages): number {
    const entries = this.#values + this.#emptyRows
    if (this.#levels.size === 0)
      appendListLevels(this.#levels, this.#rowLengths, this.#rows, entries, this.#emptyRows)
    pages.data.appendBytes(this.#levels.bytes.subarray(0, this.#levels.size))
    return entries
  }
}
