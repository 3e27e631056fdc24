// Writes records as json, ndjson or csv, directly into the chunk for the client. A null is `null` in json and empty in csv,
// where an empty text is `""`. csv follows RFC 4180, but lines end with LF.

import { RECORD_ENCODE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import { TimeZone } from '../../shared/time-zone.ts'
import { writeDigits, writeLongDigits } from '../output/ascii-digits.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import { type PaddedText, paddedText, putAscii, putText } from '../output/padded-text.ts'
import { InstantWriter } from './instant-text.ts'
import type { ColumnValues, RecordBatch, RecordEncoder } from './record-batch.ts'

export type TextFormat = 'json' | 'ndjson' | 'csv'

const UTC = new TimeZone('UTC')
const encoder = new TextEncoder()
/** More than the bytes of a number, instant or boolean plus the bytes that writing it or a text may touch after its end. */
const VALUE_BYTES_MAX = 48
/** Encoded texts that are cached for each column. */
const TEXTS_KEPT_MAX = 4_096
const LF = 0x0a
const COMMA = 0x2c
const CLOSING_BRACE = 0x7d
const NULL = paddedText('null')
const TRUE = paddedText('true')
const FALSE = paddedText('false')
const NOTHING = paddedText('')
const NO_HALVES = new Int32Array(0)

function csvText(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** A cache of the encoded texts of one column. */
class TextCache {
  readonly #encode: (text: string) => string
  readonly #known = new Map<string, PaddedText>()
  #last = ''
  #lastEncoded: PaddedText

  constructor(encode: (text: string) => string) {
    this.#encode = encode
    this.#lastEncoded = paddedText(encode(''))
  }

  encodedOf(text: string): PaddedText {
    if (text === this.#last) return this.#lastEncoded
    let encoded = this.#known.get(text)
    if (encoded === undefined) {
      encoded = paddedText(this.#encode(text))
      if (this.#known.size < TEXTS_KEPT_MAX) this.#known.set(text, encoded)
    }
    this.#last = text
    this.#lastEncoded = encoded
    return encoded
  }
}

interface ColumnWriter {
  /** The text before the value: `,"name":` or a comma. */
  readonly before: PaddedText
  readonly field: RecordField
  readonly texts: TextCache
  readonly instants: InstantWriter
  /** The encoded text of the next row, if the column has texts. */
  text: PaddedText
  /** The 64-bit integers of the batch as 32-bit halves, because each BigInt would be an object. */
  halves: Int32Array
}

export class RecordTextEncoder implements RecordEncoder {
  readonly #format: TextFormat
  readonly #stream: ChunkStream
  readonly #columns: readonly ColumnWriter[]
  readonly #reserveBytes: number
  readonly #null: PaddedText
  #rows = 0

  constructor(format: TextFormat, fields: readonly RecordField[], stream: ChunkStream) {
    this.#format = format
    this.#stream = stream
    const isCsv = format === 'csv'
    this.#null = isCsv ? NOTHING : NULL
    this.#columns = fields.map((field, index) => {
      const name = `${index === 0 ? '{' : ','}${JSON.stringify(field.name)}:`
      return {
        field,
        before: paddedText(isCsv ? (index === 0 ? '' : ',') : name),
        texts: new TextCache(isCsv ? csvText : JSON.stringify),
        instants: new InstantWriter(!isCsv),
        text: NOTHING,
        halves: NO_HALVES,
      }
    })
    const labelBytes = this.#columns.reduce((sum, { before }) => sum + before.length, 0)
    this.#reserveBytes = labelBytes + VALUE_BYTES_MAX * (fields.length + 1)
  }

  async begin(): Promise<void> {
    if (this.#format === 'json') await this.#stream.write(encoder.encode('['))
    if (this.#format === 'csv') {
      await this.#stream.write(encoder.encode(`${this.#columns.map(({ field }) => field.name).join(',')}\n`))
    }
  }

  async write(batch: RecordBatch): Promise<void> {
    const stream = this.#stream
    for (const [column, values] of batch.columns.entries())
      if (values instanceof BigInt64Array)
        this.#columns[column]!.halves = new Int32Array(values.buffer, values.byteOffset, 2 * values.length)
    for (let row = 0; row < batch.rows; row++) {
      const reserve = this.#reserveBytes + this.#takeTexts(batch, row)
      if (stream.lacks(reserve)) await stream.roomFor(reserve)
      this.#writeRow(batch, row)
      if ((row + 1) % RECORD_ENCODE_BATCH_ROWS === 0) stream.throwIfCancelled()
    }
  }

  async finish(): Promise<void> {
    if (this.#format === 'json') await this.#stream.write(encoder.encode(']'))
  }

  /** Encodes a row's texts and returns their total length in bytes. */
  #takeTexts(batch: RecordBatch, row: number): number {
    let bytes = 0
    for (let column = 0; column < this.#columns.length; column++) {
      const values = batch.columns[column]!
      if (values instanceof Float64Array || values instanceof BigInt64Array) continue
      const writer = this.#columns[column]!
      const text = Array.isArray(values) ? values[row] : values.at(row)
      writer.text = typeof text === 'string' ? writer.texts.encodedOf(text) : this.#null
      bytes += writer.text.length
    }
    return bytes
  }

  #writeRow(batch: RecordBatch, row: number): void {
    const { bytes, view } = this.#stream
    let position = this.#stream.position
    if (this.#format === 'json' && this.#rows > 0) bytes[position++] = COMMA
    this.#rows++
    const zone = batch.zoneOf?.(row) ?? UTC
    for (let column = 0; column < this.#columns.length; column++) {
      const writer = this.#columns[column]!
      position = putText(view, position, writer.before)
      position = this.#writeValue(position, writer, batch.columns[column]!, row, zone)
    }
    if (this.#format !== 'csv') bytes[position++] = CLOSING_BRACE
    if (this.#format !== 'json') bytes[position++] = LF
    this.#stream.position = position
  }

  #writeValue(
    position: number,
    { field, text, instants, halves }: ColumnWriter,
    values: ColumnValues,
    row: number,
    zone: TimeZone,
  ): number {
    const { view } = this.#stream
    if (values instanceof BigInt64Array) {
      const high = halves[2 * row + 1]!
      return high < 0
        ? putText(view, position, this.#null)
        : writeLongDigits(view, position, high, halves[2 * row]!)
    }
    if (!(values instanceof Float64Array)) return putText(view, position, text)
    const value = values[row]!
    if (Number.isNaN(value)) return putText(view, position, this.#null)
    if (field.type === 'boolean') return putText(view, position, value === 0 ? FALSE : TRUE)
    if (field.type === 'instant') return instants.write(this.#stream, position, value, zone)
    if (value >= 0 && Number.isSafeInteger(value)) return writeDigits(view, position, value)
    return putAscii(view, position, String(value + 0))
  }
}
