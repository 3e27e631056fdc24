// Records as a parquet file, row group by row group. A nullable field is OPTIONAL with definition levels, any other is
// REQUIRED; texts are dictionary encoded while they repeat. Instants are TIMESTAMP(us, UTC), which has no place for a
// zone's label; dates are DATE. Own pages on typed arrays, because libraries take objects or copies of everything.

import type { SchemaElement } from 'hyparquet'
import { RECORD_ROW_GROUP_ROWS } from '../../shared/limits.ts'
import type { RecordField, RecordFieldType } from '../../shared/record-schema.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import { ParquetFileWriter } from '../output/parquet-file-writer.ts'
import type { ChunkPages, EncodedChunk, LeafColumn } from '../output/parquet-leaf.ts'
import { appendCodes, CodeArray, type PageBuffer } from '../output/parquet-pages.ts'
import { type ColumnValues, emptyColumns, type RecordBatch, type RecordEncoder } from './record-batch.ts'

const TWO_POWER_32 = 0x1_0000_0000
/** Distinct texts of one row group up to which a dictionary is worth it. */
const DICTIONARY_ENTRIES_MAX = 16_384

type PhysicalType = 'BOOLEAN' | 'INT32' | 'INT64' | 'DOUBLE' | 'BYTE_ARRAY'

const PHYSICAL_TYPES: Readonly<Record<RecordFieldType, PhysicalType>> = {
  string: 'BYTE_ARRAY',
  date: 'INT32',
  number: 'DOUBLE',
  integer: 'INT32',
  boolean: 'BOOLEAN',
  instant: 'INT64',
}

/** How a field lies in the file. */
function physicalType(field: RecordField): PhysicalType {
  return field.type === 'integer' && field.isWide === true ? 'INT64' : PHYSICAL_TYPES[field.type]
}

function schemaElement(field: RecordField): SchemaElement {
  return {
    name: field.name,
    type: physicalType(field),
    repetition_type: field.nullable ? 'OPTIONAL' : 'REQUIRED',
    ...(field.type === 'string' ? { converted_type: 'UTF8', logical_type: { type: 'STRING' } } : {}),
    ...(field.type === 'date' ? { converted_type: 'DATE', logical_type: { type: 'DATE' } } : {}),
    ...(field.type === 'instant'
      ? {
          converted_type: 'TIMESTAMP_MICROS',
          logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
        }
      : {}),
  }
}

export class RecordParquetEncoder implements RecordEncoder {
  readonly #fields: readonly RecordField[]
  readonly #stream: ChunkStream
  readonly #file: ParquetFileWriter
  readonly #buffer: (Float64Array | (string | null)[])[]
  readonly #encoded: Uint8Array[] = []
  readonly #sink = { write: (bytes: Uint8Array): void => void this.#encoded.push(bytes.slice()) }
  #rows = 0

  constructor(fields: readonly RecordField[], stream: ChunkStream) {
    this.#fields = fields
    this.#stream = stream
    this.#file = new ParquetFileWriter(fields.map(schemaElement), fields.length)
    this.#buffer = emptyColumns(fields, RECORD_ROW_GROUP_ROWS)
  }

  async begin(): Promise<void> {}

  async write(batch: RecordBatch): Promise<void> {
    for (let from = 0; from < batch.rows;) {
      const count = Math.min(batch.rows - from, RECORD_ROW_GROUP_ROWS - this.#rows)
      for (const [index, values] of batch.columns.entries()) this.#take(index, values, from, count)
      this.#rows += count
      from += count
      if (this.#rows === RECORD_ROW_GROUP_ROWS) await this.#flush()
    }
  }

  async finish(): Promise<void> {
    if (this.#rows > 0) await this.#flush()
    this.#file.finish(this.#sink)
    await this.#drain()
  }

  #take(index: number, values: ColumnValues, from: number, count: number): void {
    const target = this.#buffer[index]!
    if (target instanceof Float64Array) {
      if (!(values instanceof Float64Array)) throw new Error(`column ${index} holds texts`)
      target.set(values.subarray(from, from + count), this.#rows)
    } else {
      for (let row = 0; row < count; row++) target[this.#rows + row] = values[from + row] as string | null
    }
  }

  async #flush(): Promise<void> {
    const leaves = this.#fields.map((field, index) => new RecordLeaf(field, this.#buffer[index]!, this.#rows))
    this.#file.writeRowGroup(leaves, this.#rows, this.#sink)
    this.#rows = 0
    await this.#drain()
  }

  async #drain(): Promise<void> {
    for (const bytes of this.#encoded.splice(0)) await this.#stream.write(bytes)
  }
}

/** One column of one row group. */
class RecordLeaf implements LeafColumn {
  readonly path: readonly string[]
  readonly type: PhysicalType
  readonly #field: RecordField
  readonly #values: ColumnValues
  readonly #rows: number

  constructor(field: RecordField, values: ColumnValues, rows: number) {
    this.path = [field.name]
    this.type = physicalType(field)
    this.#field = field
    this.#values = values
    this.#rows = rows
  }

  encode(pages: ChunkPages): EncodedChunk {
    const values = this.#values
    const nullCount = this.#field.nullable ? appendDefinitionLevels(pages.data, values, this.#rows) : 0
    const plain = { valueCount: this.#rows, dictionaryCount: 0, encoding: 'PLAIN' as const, nullCount }
    if (!(values instanceof Float64Array)) {
      if (this.#field.type === 'string') return { ...plain, ...appendTexts(pages, values, this.#rows) }
      appendDays(pages.data, values, this.#rows)
      return plain
    }
    const { type } = this
    if (type === 'BOOLEAN') appendBooleans(pages.data, values, this.#rows, nullCount)
    else if (type === 'INT32') appendInt32s(pages.data, values, this.#rows)
    else if (type === 'DOUBLE') appendDoubles(pages.data, values, this.#rows)
    else appendInt64s(pages.data, values, this.#rows, this.#field.type === 'instant' ? 1000 : 1)
    return plain
  }
}

function isNull(values: ColumnValues, row: number): boolean {
  return values instanceof Float64Array ? Number.isNaN(values[row]!) : values[row] === null
}

/** One bit a row, set where there is a value, as one bit-packed run behind its size; returns the number of nulls. */
function appendDefinitionLevels(page: PageBuffer, values: ColumnValues, rows: number): number {
  const sizeAt = page.reserve(4)
  const groups = Math.ceil(rows / 8)
  page.appendVarint(2 * groups + 1)
  const start = page.reserve(groups)
  page.view.setUint32(sizeAt, page.size - sizeAt - 4, true)
  const { bytes } = page
  bytes.fill(0, start, start + groups)
  let nullCount = 0
  for (let row = 0; row < rows; row++) {
    if (isNull(values, row)) nullCount++
    else bytes[start + (row >>> 3)]! |= 1 << (row & 7)
  }
  return nullCount
}

function appendBooleans(page: PageBuffer, values: Float64Array, rows: number, nullCount: number): void {
  const sizeBytes = Math.ceil((rows - nullCount) / 8)
  const start = page.reserve(sizeBytes)
  const { bytes } = page
  bytes.fill(0, start, start + sizeBytes)
  let at = 0
  for (let row = 0; row < rows; row++) {
    const value = values[row]!
    if (Number.isNaN(value)) continue
    if (value !== 0) bytes[start + (at >>> 3)]! |= 1 << (at & 7)
    at++
  }
}

function appendInt32s(page: PageBuffer, values: Float64Array, rows: number): void {
  let at = page.reserve(4 * rows)
  const { view } = page
  for (let row = 0; row < rows; row++) {
    const value = values[row]!
    if (Number.isNaN(value)) continue
    if ((value | 0) !== value) throw new RangeError(`${value} is no 32-bit integer`)
    view.setInt32(at, value, true)
    at += 4
  }
  page.truncate(at)
}

function appendInt64s(page: PageBuffer, values: Float64Array, rows: number, factor: number): void {
  let at = page.reserve(8 * rows)
  const { view } = page
  for (let row = 0; row < rows; row++) {
    const value = values[row]! * factor
    if (Number.isNaN(value)) continue
    if (!Number.isSafeInteger(value)) throw new RangeError(`${value} is no exact integer`)
    view.setUint32(at, value >>> 0, true)
    view.setInt32(at + 4, Math.floor(value / TWO_POWER_32), true)
    at += 8
  }
  page.truncate(at)
}

function appendDoubles(page: PageBuffer, values: Float64Array, rows: number): void {
  let at = page.reserve(8 * rows)
  const { view } = page
  for (let row = 0; row < rows; row++) {
    const value = values[row]!
    if (Number.isNaN(value)) continue
    view.setFloat64(at, value, true)
    at += 8
  }
  page.truncate(at)
}

/** `YYYY-MM-DD` as days since the epoch. */
function appendDays(page: PageBuffer, dates: readonly (string | null)[], rows: number): void {
  for (let row = 0; row < rows; row++) {
    const date = dates[row]
    if (typeof date === 'string') page.appendUint32(Date.parse(`${date}T00:00:00Z`) / MS_PER_DAY)
  }
}

function appendTexts(
  pages: ChunkPages,
  texts: readonly (string | null)[],
  rows: number,
): Pick<EncodedChunk, 'dictionaryCount' | 'encoding'> {
  const codeOf = new Map<string, number>()
  const codes = new CodeArray(rows)
  let count = 0
  for (let row = 0; row < rows && codeOf.size <= DICTIONARY_ENTRIES_MAX; row++) {
    const text = texts[row]
    if (typeof text !== 'string') continue
    let code = codeOf.get(text)
    if (code === undefined) {
      code = codeOf.size
      codeOf.set(text, code)
    }
    codes.low[count++] = code
  }
  if (codeOf.size > Math.min(DICTIONARY_ENTRIES_MAX, count / 2)) {
    for (let row = 0; row < rows; row++) {
      const text = texts[row]
      if (typeof text === 'string') appendText(pages.data, text)
    }
    return { dictionaryCount: 0, encoding: 'PLAIN' }
  }
  // A column of nothing but nulls has neither dictionary nor values.
  if (count === 0) return { dictionaryCount: 0, encoding: 'PLAIN' }
  for (const text of codeOf.keys()) appendText(pages.dictionary, text)
  appendCodes(pages.data, codes, count, codeOf.size)
  return { dictionaryCount: codeOf.size, encoding: 'RLE_DICTIONARY' }
}

function appendText(page: PageBuffer, text: string): void {
  const bytes = Buffer.from(text, 'utf8')
  page.appendUint32(bytes.length)
  page.appendBytes(bytes)
}
