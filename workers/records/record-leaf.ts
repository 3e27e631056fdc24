// The columns of a record answer. Each buffers the rows of a row group and encodes them: definition levels if the field is
// nullable, then values. Numbers in a narrow span become dictionary codes (number-span.ts).

import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { ChunkPages, EncodedChunk, LeafColumn } from '../output/parquet-leaf.ts'
import {
  appendByteCodes,
  appendCodes,
  appendDefinitionLevels,
  CodeArray,
  type PageBuffer,
  reserveLevels,
} from '../output/parquet-pages.ts'
import { spanOf, valuesOf, writeCodes } from './number-span.ts'
import type { ColumnValues } from './record-batch.ts'
import { TextBuffer } from './text-buffer.ts'

const TWO_POWER_32 = 0x1_0000_0000
const MICROSECONDS_PER_MS = 1000
const BYTE_CODES_MAX = 0x100

export type PhysicalType = 'BOOLEAN' | 'INT32' | 'INT64' | 'DOUBLE' | 'BYTE_ARRAY'

interface LeafForm {
  readonly name: string
  readonly type: PhysicalType
  readonly isNullable: boolean
}

/** One column: takes the rows of a group, encodes them, and is cleared for the next. */
export abstract class RecordLeaf implements LeafColumn {
  readonly path: readonly string[]
  readonly type: PhysicalType
  protected readonly isNullable: boolean
  protected rows = 0

  constructor({ name, type, isNullable }: LeafForm) {
    this.path = [name]
    this.type = type
    this.isNullable = isNullable
  }

  abstract take(values: ColumnValues, from: number, count: number): void
  abstract encode(pages: ChunkPages): EncodedChunk

  clear(): void {
    this.rows = 0
  }

  /** Writes the levels of a nullable column, and returns how many values are null. */
  protected appendLevels(page: PageBuffer, isNull: (row: number) => boolean): number {
    return this.isNullable ? appendDefinitionLevels(page, this.rows, isNull) : 0
  }
}

export class TextLeaf extends RecordLeaf {
  readonly #texts: TextBuffer

  constructor(form: LeafForm, rowsMax: number) {
    super(form)
    this.#texts = new TextBuffer(rowsMax)
  }

  override take(values: ColumnValues, from: number, count: number): void {
    this.#texts.take(textsOf(this, values), from, count)
    this.rows += count
  }

  override encode(pages: ChunkPages): EncodedChunk {
    const texts = this.#texts
    const nullCount = this.appendLevels(pages.data, (row) => texts.isNull(row))
    return { valueCount: this.rows, nullCount, ...texts.encode(pages) }
  }

  override clear(): void {
    super.clear()
    this.#texts.clear()
  }
}

/** Times in nanoseconds; a negative one stands for null. */
export class NanosecondsLeaf extends RecordLeaf {
  readonly #values: BigInt64Array

  constructor(form: LeafForm, rowsMax: number) {
    super(form)
    this.#values = new BigInt64Array(rowsMax)
  }

  override take(values: ColumnValues, from: number, count: number): void {
    if (!(values instanceof BigInt64Array)) throw new Error(`column ${this.path[0]} holds no times`)
    this.#values.set(values.subarray(from, from + count), this.rows)
    this.rows += count
  }

  override encode(pages: ChunkPages): EncodedChunk {
    // Read as 32-bit halves, because each BigInt would be an object.
    const halves = new Int32Array(this.#values.buffer)
    const nullCount = this.appendLevels(pages.data, (row) => halves[2 * row + 1]! < 0)
    let at = pages.data.reserve(8 * (this.rows - nullCount))
    const { view } = pages.data
    for (let row = 0; row < this.rows; row++) {
      if (halves[2 * row + 1]! < 0) continue
      view.setInt32(at, halves[2 * row]!, true)
      view.setInt32(at + 4, halves[2 * row + 1]!, true)
      at += 8
    }
    return { valueCount: this.rows, dictionaryCount: 0, encoding: 'PLAIN', nullCount }
  }
}

/** Dates, `YYYY-MM-DD` in memory and days since the epoch in the file. */
export class DateLeaf extends RecordLeaf {
  readonly #dates: (string | null)[] = []

  override take(values: ColumnValues, from: number, count: number): void {
    const texts = textsOf(this, values)
    for (let row = from; row < from + count; row++) this.#dates.push(texts.at(row) ?? null)
    this.rows += count
  }

  override encode(pages: ChunkPages): EncodedChunk {
    const dates = this.#dates
    const nullCount = this.appendLevels(pages.data, (row) => dates[row] === null)
    for (const date of dates)
      if (date !== null) pages.data.appendUint32(Date.parse(`${date}T00:00:00Z`) / MS_PER_DAY)
    return { valueCount: this.rows, dictionaryCount: 0, encoding: 'PLAIN', nullCount }
  }

  override clear(): void {
    super.clear()
    this.#dates.length = 0
  }
}

export class NumberLeaf extends RecordLeaf {
  readonly #isInstant: boolean
  readonly #values: Float64Array
  readonly #codes: CodeArray
  readonly #byteCodes: Uint8Array

  /** Instants are milliseconds in memory and microseconds in the file. */
  constructor(form: LeafForm, rowsMax: number, isInstant: boolean) {
    super(form)
    this.#isInstant = isInstant
    this.#values = new Float64Array(rowsMax)
    this.#codes = new CodeArray(isInstant || form.type === 'BOOLEAN' ? 0 : rowsMax)
    this.#byteCodes = new Uint8Array(this.#codes.capacity)
  }

  override take(values: ColumnValues, from: number, count: number): void {
    if (!(values instanceof Float64Array)) throw new Error(`column ${this.path[0]} holds texts`)
    this.#values.set(values.subarray(from, from + count), this.rows)
    this.rows += count
  }

  override encode(pages: ChunkPages): EncodedChunk {
    const { type } = this
    const values = this.#values.subarray(0, this.rows)
    const nullCount = this.isNullable ? appendNumberLevels(pages.data, values) : 0
    const chunk = { valueCount: this.rows, nullCount }
    const span =
      this.#codes.capacity === 0 ? undefined : spanOf(values, this.rows - nullCount, type === 'DOUBLE')
    if (span !== undefined) {
      appendNumbers(pages.dictionary, type, valuesOf(span))
      if (span.size <= BYTE_CODES_MAX)
        appendByteCodes(pages.data, this.#byteCodes, writeCodes(values, span, this.#byteCodes))
      else appendCodes(pages.data, this.#codes, writeCodes(values, span, this.#codes.low), span.size)
      return { ...chunk, dictionaryCount: span.size, encoding: 'RLE_DICTIONARY' }
    }
    if (type === 'BOOLEAN') appendBooleans(pages.data, values, nullCount)
    else appendNumbers(pages.data, type, values, this.#isInstant ? MICROSECONDS_PER_MS : 1)
    return { ...chunk, dictionaryCount: 0, encoding: 'PLAIN' }
  }
}

function textsOf({ path }: RecordLeaf, values: ColumnValues) {
  if (values instanceof Float64Array || values instanceof BigInt64Array)
    throw new Error(`column ${path[0]} holds numbers`)
  return values
}

function appendNumberLevels(page: PageBuffer, values: Float64Array): number {
  const start = reserveLevels(page, values.length)
  const { bytes } = page
  let nullCount = 0
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (value === value) bytes[start + (row >>> 3)]! |= 1 << (row & 7)
    else nullCount++
  }
  return nullCount
}

/** Appends numbers. 64-bit integers are multiplied by `factor`. */
function appendNumbers(page: PageBuffer, type: PhysicalType, values: Float64Array, factor = 1): void {
  if (type === 'INT32') appendInt32s(page, values)
  else if (type === 'DOUBLE') appendDoubles(page, values)
  else appendInt64s(page, values, factor)
}

function appendBooleans(page: PageBuffer, values: Float64Array, nullCount: number): void {
  const sizeBytes = Math.ceil((values.length - nullCount) / 8)
  const start = page.reserve(sizeBytes)
  const { bytes } = page
  bytes.fill(0, start, start + sizeBytes)
  let at = 0
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (Number.isNaN(value)) continue
    if (value !== 0) bytes[start + (at >>> 3)]! |= 1 << (at & 7)
    at++
  }
}

function appendInt32s(page: PageBuffer, values: Float64Array): void {
  let at = page.reserve(4 * values.length)
  const { view } = page
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (Number.isNaN(value)) continue
    if ((value | 0) !== value) throw new RangeError(`${value} is no 32-bit integer`)
    view.setInt32(at, value, true)
    at += 4
  }
  page.truncate(at)
}

function appendInt64s(page: PageBuffer, values: Float64Array, factor: number): void {
  let at = page.reserve(8 * values.length)
  const { view } = page
  for (let row = 0; row < values.length; row++) {
    const value = values[row]! * factor
    if (Number.isNaN(value)) continue
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no exact integer`)
    view.setUint32(at, value >>> 0, true)
    view.setInt32(at + 4, Math.floor(value / TWO_POWER_32), true)
    at += 8
  }
  page.truncate(at)
}

function appendDoubles(page: PageBuffer, values: Float64Array): void {
  let at = page.reserve(8 * values.length)
  const { view } = page
  for (let row = 0; row < values.length; row++) {
    const value = values[row]!
    if (Number.isNaN(value)) continue
    view.setFloat64(at, value, true)
    at += 8
  }
  page.truncate(at)
}
