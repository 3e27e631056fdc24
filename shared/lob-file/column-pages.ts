// Reads the pages of one flat column chunk: headers, checksums, compression and definition levels. The values stay encoded. If a
// page has an encoding that the typed decoders do not support, `UnusualEncoding` is thrown and the caller falls back to
// hyparquet's column reader. Source: parquet-format README "Data Pages" and Encodings.md.

import { crc32 } from 'node:zlib'
import type { ColumnMetaData, SchemaTree } from 'hyparquet'
import { parquetHeader, readColumn } from 'hyparquet/src/column.js'
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js'
import {
  LOB_ROW_GROUP_ROWS_MAX,
  MARKET_ID_BYTES_MAX,
  PAGE_OVERHEAD_BYTES_MAX,
  VALUE_OVERHEAD_BYTES_MAX,
} from '../limits.ts'
import { decompressPage, pageCompressors } from './decompress.ts'
import { refuseLongId } from './plain-values.ts'
import { byteReader, readDelta, readHybrid, type ByteReader } from './unpack-integers.ts'

type Header = ReturnType<typeof parquetHeader>

/** The maximum bytes of one value, by type. */
const VALUE_BYTES_MAX: Readonly<Record<string, number>> = {
  INT32: 4,
  INT64: 8,
  BYTE_ARRAY: MARKET_ID_BYTES_MAX,
}

/** The position of one column chunk in its file, and its encoding. */
export interface ColumnChunk {
  readonly name: string
  readonly offset: number
  readonly sizeBytes: number
  /** CRC-32 of the chunk's bytes, if the file's footer has it. */
  readonly crc32: number | undefined
  readonly isOptional: boolean
  readonly metadata: ColumnMetaData
  readonly schemaPath: SchemaTree[]
}

export class UnusualEncoding extends Error {}

/** One page's values; `reader` is at the first one. */
export interface ValuePage {
  readonly encoding: string
  readonly count: number
  readonly reader: ByteReader
}

/** A decoder of the pages of a chunk. Each page's bytes are valid only during the call. */
export interface PageVisitor {
  dictionary(page: ValuePage): void
  /** `start` is the row of the page's first value. */
  values(page: ValuePage, start: number): void
}

/** Rows `[start, stop)` of a row group. */
export interface RowRange {
  readonly start: number
  readonly stop: number
}

/**
 * Visits the dictionary page (if any) and the data pages of a chunk that have rows of `wanted`. Throws if the chunk does not have
 * `rows` values.
 */
export function visitPages(
  bytes: Uint8Array,
  chunk: ColumnChunk,
  rows: number,
  wanted: RowRange,
  visitor: PageVisitor,
): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const cursor = { view, offset: 0 }
  let count = 0
  let isAnySkipped = false
  // The stated length of a skipped page is verified only by the sum of all pages, which must be `rows`.
  while (count < rows || (isAnySkipped && cursor.offset < bytes.length)) {
    if (cursor.offset >= bytes.length)
      throw new Error(`column ${chunk.name} ends after ${count} of ${rows} values`)
    const { header, body } = nextPage(bytes, cursor, chunk, rows)
    const values = dataValuesOf(header)
    if (values !== undefined) {
      if (count + values > rows) throw new Error(`column ${chunk.name} holds more than ${rows} values`)
      if (count + values <= wanted.start || count >= wanted.stop) {
        count += values
        isAnySkipped = true
        continue
      }
    }
    if (header.crc !== undefined && (crc32(body) | 0) !== header.crc) {
      throw new Error(`a page of column ${chunk.name} has a wrong checksum`)
    }
    if (header.type === 'DICTIONARY_PAGE' && header.dictionary_page_header) {
      const plain = decompressPage(chunk.metadata.codec, body, header.uncompressed_page_size)
      const { num_values: entries } = header.dictionary_page_header
      // An entry has at least 4 bytes: a 32-bit integer, or the length of an empty string.
      if (entries * 4 > plain.length) throw new Error(`the dictionary of column ${chunk.name} is cut off`)
      visitor.dictionary({ encoding: 'PLAIN', count: entries, reader: byteReader(plain) })
    } else {
      const page = dataPage(chunk, header, body)
      if (page === undefined) continue
      visitor.values(page, count)
      count += page.count
    }
  }
}

function dataValuesOf(header: Header): number | undefined {
  return header.data_page_header?.num_values ?? header.data_page_header_v2?.num_values
}

/** Reads the page at the cursor and moves the cursor after it. Refuses more bytes than the page's values can have. */
function nextPage(
  bytes: Uint8Array,
  cursor: { readonly view: DataView; offset: number },
  chunk: ColumnChunk,
  rows: number,
): { header: Header; body: Uint8Array } {
  const header = parquetHeader(cursor)
  const start = cursor.offset
  const stop = start + header.compressed_page_size
  if (!(stop >= start) || stop > bytes.length) throw new Error(`a page of column ${chunk.name} is cut off`)
  cursor.offset = stop
  const values = dataValuesOf(header) ?? header.dictionary_page_header?.num_values ?? 0
  // Some writers store dictionary entries that no row uses.
  const countedValues = Math.min(values, Math.max(rows, LOB_ROW_GROUP_ROWS_MAX))
  const valueBytesMax = (VALUE_BYTES_MAX[chunk.metadata.type] ?? 0) + VALUE_OVERHEAD_BYTES_MAX
  const claimedBytes = header.uncompressed_page_size
  if (claimedBytes > PAGE_OVERHEAD_BYTES_MAX + countedValues * valueBytesMax)
    throw new Error(`a page of column ${chunk.name} claims ${claimedBytes} bytes for ${values} values`)
  return { header, body: bytes.subarray(start, stop) }
}

function dataPage(chunk: ColumnChunk, header: Header, body: Uint8Array): ValuePage | undefined {
  const v1 = header.data_page_header
  const v2 = header.data_page_header_v2
  const { codec } = chunk.metadata
  if (header.type === 'DATA_PAGE' && v1) {
    const reader = byteReader(decompressPage(codec, body, header.uncompressed_page_size))
    if (chunk.isOptional) {
      if (v1.definition_level_encoding !== 'RLE') throw new UnusualEncoding(v1.definition_level_encoding)
      if (reader.end < 4) throw new Error(`a page of column ${chunk.name} is cut off`)
      const levelBytes = reader.view.getUint32(0, true)
      reader.offset = 4
      refuseNulls(chunk, reader, v1.num_values)
      reader.offset = 4 + levelBytes
    }
    return { encoding: v1.encoding, count: v1.num_values, reader }
  }
  if (header.type === 'DATA_PAGE_V2' && v2) {
    if (v2.num_nulls > 0) throw nullFound(chunk)
    const levelBytes = v2.definition_levels_byte_length + v2.repetition_levels_byte_length
    const values = body.subarray(levelBytes)
    const plain =
      v2.is_compressed === false
        ? values
        : decompressPage(codec, values, header.uncompressed_page_size - levelBytes)
    return { encoding: v2.encoding, count: v2.num_values, reader: byteReader(plain) }
  }
  if (header.type === 'INDEX_PAGE') return undefined
  throw new Error(`a page of column ${chunk.name} has an unknown type`)
}

function nullFound(chunk: ColumnChunk): Error {
  return new Error(`column ${chunk.name} has a null`)
}

function refuseNulls(chunk: ColumnChunk, reader: ByteReader, count: number): void {
  const levels = new Int32Array(count)
  readHybrid(reader, 1, levels, 0, count)
  if (levels.includes(0)) throw nullFound(chunk)
}

/** Checks that hyparquet lacks: the sizes of pages, and the length of the prefix that a string shares with the one before. */
function checkPages(bytes: Uint8Array, view: DataView, chunk: ColumnChunk, rows: number): void {
  const cursor = { view, offset: 0 }
  for (let count = 0; count < rows && cursor.offset < bytes.length;) {
    const { header, body } = nextPage(bytes, cursor, chunk, rows)
    const values = dataValuesOf(header) ?? 0
    count += values
    if (count > rows) throw new Error(`column ${chunk.name} holds more than ${rows} values`)
    const encoding = header.data_page_header?.encoding ?? header.data_page_header_v2?.encoding
    const page = encoding === 'DELTA_BYTE_ARRAY' ? dataPage(chunk, header, body) : undefined
    if (page === undefined) continue
    const prefixBytes = new Float64Array(values)
    readDelta(page.reader, 0n, prefixBytes, 0, values)
    for (const length of prefixBytes) refuseLongId(length)
  }
}

/** Reads every value of a chunk with hyparquet, which is slow but supports every encoding. Throws on a null. */
export function readUnusualColumn(bytes: Uint8Array, chunk: ColumnChunk, rows: number): readonly unknown[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  checkPages(bytes, view, chunk, rows)
  const element = chunk.schemaPath[chunk.schemaPath.length - 1]!.element
  const { data } = readColumn(
    { view, offset: 0 },
    { groupStart: 0, selectStart: 0, selectEnd: rows, groupRows: rows },
    {
      pathInSchema: chunk.metadata.path_in_schema,
      type: chunk.metadata.type,
      codec: chunk.metadata.codec,
      element,
      schemaPath: chunk.schemaPath,
      parsers: DEFAULT_PARSERS,
      compressors: pageCompressors,
      utf8: true,
    },
  )
  const values: unknown[] = []
  for (const part of data) for (const value of part) values.push(value)
  if (values.length !== rows) {
    throw new Error(`column ${chunk.name} holds ${values.length} values instead of ${rows}`)
  }
  if (values.some((value) => value === null || value === undefined)) throw nullFound(chunk)
  return values
}
