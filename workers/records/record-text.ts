// Records as json, ndjson and csv: bytes straight into the chunk that goes to the client. A null is `null` in json and
// nothing in csv, where an empty text is `""`. csv follows RFC 4180, lines end with LF.

import { RECORD_ENCODE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import { TimeZone } from '../../shared/time-zone.ts'
import { writeDigits } from '../output/ascii-digits.ts'
import type { ChunkStream } from '../output/chunk-stream.ts'
import { InstantWriter } from './instant-text.ts'
import type { RecordBatch, RecordEncoder } from './record-batch.ts'

export type TextFormat = 'json' | 'ndjson' | 'csv'

const UTC = new TimeZone('UTC')
const encoder = new TextEncoder()
/** A number, an instant or a boolean takes fewer bytes than this, the slack of the digit tables included. */
const VALUE_BYTES_MAX = 48
/** Distinct texts of one column that are kept encoded. */
const TEXTS_KEPT_MAX = 4_096
const LF = 0x0a
const COMMA = 0x2c
const CLOSING_BRACE = 0x7d
const NULL_BYTES = encoder.encode('null')
const TRUE_BYTES = encoder.encode('true')
const FALSE_BYTES = encoder.encode('false')
const NO_BYTES = new Uint8Array(0)

function csvText(text: string): string {
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** The encoded texts of one column: those met before are only copied. */
class TextCache {
  readonly #encode: (text: string) => string
  readonly #known = new Map<string, Uint8Array>()
  #last = ''
  #lastBytes: Uint8Array

  constructor(encode: (text: string) => string) {
    this.#encode = encode
    this.#lastBytes = encoder.encode(encode(''))
  }

  bytesOf(text: string): Uint8Array {
    if (text === this.#last) return this.#lastBytes
    let bytes = this.#known.get(text)
    if (bytes === undefined) {
      bytes = encoder.encode(this.#encode(text))
      if (this.#known.size < TEXTS_KEPT_MAX) this.#known.set(text, bytes)
    }
    this.#last = text
    this.#lastBytes = bytes
    return bytes
  }
}

interface ColumnWriter {
  /** What stands before the value: `,"name":` or a comma. */
  readonly before: Uint8Array
  readonly field: RecordField
  readonly texts: TextCache
  readonly instants: InstantWriter
}

export class RecordTextEncoder implements RecordEncoder {
  readonly #format: TextFormat
  readonly #stream: ChunkStream
  readonly #columns: readonly ColumnWriter[]
  readonly #reserveBytes: number
  readonly #nullBytes: Uint8Array
  #rows = 0

  constructor(format: TextFormat, fields: readonly RecordField[], stream: ChunkStream) {
    this.#format = format
    this.#stream = stream
    const isCsv = format === 'csv'
    this.#nullBytes = isCsv ? NO_BYTES : NULL_BYTES
    this.#columns = fields.map((field, index) => {
      const name = `${index === 0 ? '{' : ','}${JSON.stringify(field.name)}:`
      return {
        field,
        before: encoder.encode(isCsv ? (index === 0 ? '' : ',') : name),
        texts: new TextCache(isCsv ? csvText : JSON.stringify),
        instants: new InstantWriter(!isCsv),
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
    for (let row = 0; row < batch.rows; row++) {
      const reserve = this.#reserveBytes + this.#textBytes(batch, row)
      if (stream.lacks(reserve)) await stream.roomFor(reserve)
      this.#writeRow(batch, row)
      if ((row + 1) % RECORD_ENCODE_BATCH_ROWS === 0) stream.throwIfCancelled()
    }
  }

  async finish(): Promise<void> {
    if (this.#format === 'json') await this.#stream.write(encoder.encode(']'))
  }

  /** The bytes of a row's texts. */
  #textBytes(batch: RecordBatch, row: number): number {
    let bytes = 0
    for (let column = 0; column < this.#columns.length; column++) {
      const values = batch.columns[column]!
      if (values instanceof Float64Array) continue
      const text = values.at(row)
      if (typeof text === 'string') bytes += this.#columns[column]!.texts.bytesOf(text).length
    }
    return bytes
  }

  #writeRow(batch: RecordBatch, row: number): void {
    const { bytes } = this.#stream
    let position = this.#stream.position
    if (this.#format === 'json' && this.#rows > 0) bytes[position++] = COMMA
    this.#rows++
    const zone = batch.zoneOf?.(row) ?? UTC
    for (let column = 0; column < this.#columns.length; column++) {
      const writer = this.#columns[column]!
      position = copy(bytes, position, writer.before)
      position = this.#writeValue(position, writer, batch, column, row, zone)
    }
    if (this.#format !== 'csv') bytes[position++] = CLOSING_BRACE
    if (this.#format !== 'json') bytes[position++] = LF
    this.#stream.position = position
  }

  #writeValue(
    position: number,
    { field, texts, instants }: ColumnWriter,
    batch: RecordBatch,
    column: number,
    row: number,
    zone: TimeZone,
  ): number {
    const { bytes, view } = this.#stream
    const values = batch.columns[column]!
    if (!(values instanceof Float64Array)) {
      const text = values.at(row)
      return copy(bytes, position, typeof text === 'string' ? texts.bytesOf(text) : this.#nullBytes)
    }
    const value = values[row]!
    if (Number.isNaN(value)) return copy(bytes, position, this.#nullBytes)
    if (field.type === 'boolean') return copy(bytes, position, value === 0 ? FALSE_BYTES : TRUE_BYTES)
    if (field.type === 'instant') return instants.write(bytes, position, value, zone)
    if (value >= 0 && Number.isSafeInteger(value)) return writeDigits(view, position, value)
    return copy(bytes, position, encoder.encode(String(value + 0)))
  }
}

function copy(target: Uint8Array, position: number, bytes: Uint8Array): number {
  // A loop beats `set` for a few bytes.
  const { length } = bytes
  if (length > 24) target.set(bytes, position)
  else for (let index = 0; index < length; index++) target[position + index] = bytes[index]!
  return position + length
}
