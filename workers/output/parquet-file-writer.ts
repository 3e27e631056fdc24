// Writes a parquet file from encoded column chunks: compression, page headers, offsets, footer. Each row group is returned as
// pieces of the file; only the metadata for the footer is kept. hyparquet-writer encodes Thrift.

import { strict as assert } from 'node:assert'
import type { ColumnChunk, RowGroup, SchemaElement } from 'hyparquet'
import type { PageHeader } from 'hyparquet/src/types.js'
import { ByteWriter } from 'hyparquet-writer'
import { writePageHeader } from 'hyparquet-writer/src/datapage.js'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import type { LeafColumn } from './parquet-leaf.ts'
import { PageBuffer } from './parquet-pages.ts'
import { SnappyCompressor, snappySizeMax } from './parquet-snappy.ts'

const MAGIC = Buffer.from('PAR1', 'latin1')
/** The encoding RLE_DICTIONARY requires version 2 of the format. */
const FORMAT_VERSION = 2
const CREATED_BY = 'bookcast'
/** Compact protocol: the next field id (1 << 4) and the type of a list. */
const THRIFT_LIST_FIELD = 0x19
const THRIFT_STRUCT = 12

export class ParquetFileWriter {
  readonly #schema: SchemaElement[]
  readonly #keyValues: { key: string; value: string }[]
  readonly #rowGroups: RowGroup[] = []
  readonly #compressor = new SnappyCompressor()
  readonly #dictionary = new PageBuffer()
  readonly #data = new PageBuffer()
  #compressed = new Uint8Array(0)
  /** The pieces that have not been returned yet. */
  readonly #pieces: Uint8Array[] = []
  #offset = 0
  #rows = 0

  /** `schema` is the depth-first list of elements below the root, `columnCount` the number of its columns. */
  constructor(
    schema: readonly SchemaElement[],
    columnCount: number,
    keyValues: Readonly<Record<string, string>> = {},
  ) {
    this.#keyValues = Object.entries(keyValues).map(([key, value]) => ({ key, value }))
    this.#schema = [{ name: 'schema', num_children: columnCount }, ...schema]
  }

  /** The pieces of one row group of `rows` rows, at least one: a column chunk per leaf, in the schema's order. */
  writeRowGroup(leaves: readonly LeafColumn[], rows: number): Uint8Array[] {
    this.#begin()
    const start = this.#offset
    const columns = leaves.map((leaf) => this.#writeChunk(leaf))
    this.#rows += rows
    this.#rowGroups.push({
      columns,
      num_rows: BigInt(rows),
      total_byte_size: columns.reduce(
        (sum, { meta_data }) => sum + (meta_data?.total_uncompressed_size ?? 0n),
        0n,
      ),
      total_compressed_size: BigInt(this.#offset - start),
      file_offset: BigInt(start),
    })
    return this.#pieces.splice(0)
  }

  /** The pieces of the footer, which ends the file. */
  finish(): Uint8Array[] {
    this.#begin()
    const footer = new ByteWriter()
    writeMetadata(footer, {
      version: FORMAT_VERSION,
      created_by: CREATED_BY,
      schema: this.#schema,
      num_rows: BigInt(this.#rows),
      row_groups: this.#rowGroups,
      ...(this.#keyValues.length > 0 && { key_value_metadata: this.#keyValues }),
      metadata_length: 0,
    })
    if (this.#rowGroups.length === 0) typeEmptyRowGroupList(footer.getBytes(), this.#keyValues[0]?.key)
    footer.appendBytes(MAGIC)
    this.#write(footer.getBytes())
    return this.#pieces.splice(0)
  }

  #begin(): void {
    if (this.#offset === 0) this.#write(MAGIC)
  }

  #write(bytes: Uint8Array): void {
    this.#pieces.push(bytes.slice())
    this.#offset += bytes.length
  }

  #writeChunk(leaf: LeafColumn): ColumnChunk {
    this.#dictionary.clear()
    this.#data.clear()
    const chunk = leaf.encode({ dictionary: this.#dictionary, data: this.#data })
    const start = this.#offset
    const hasDictionary = chunk.dictionaryCount > 0
    let uncompressedSize = 0
    if (hasDictionary) {
      uncompressedSize += this.#writePage(this.#dictionary, {
        type: 'DICTIONARY_PAGE',
        dictionary_page_header: { num_values: chunk.dictionaryCount, encoding: 'PLAIN' },
      })
    }
    const dataStart = this.#offset
    const header = {
      num_values: chunk.valueCount,
      encoding: chunk.encoding,
      definition_level_encoding: 'RLE',
      repetition_level_encoding: 'RLE',
    } as const
    const isText = leaf.type === 'BYTE_ARRAY' && chunk.encoding === 'PLAIN'
    const page = { type: 'DATA_PAGE', data_page_header: header } as const
    uncompressedSize += this.#writePage(this.#data, page, isText)
    return {
      file_offset: BigInt(start),
      meta_data: {
        type: leaf.type,
        encodings: hasDictionary ? ['PLAIN', 'RLE', chunk.encoding] : ['RLE', chunk.encoding],
        path_in_schema: [...leaf.path],
        codec: 'SNAPPY',
        num_values: BigInt(chunk.valueCount),
        total_uncompressed_size: BigInt(uncompressedSize),
        total_compressed_size: BigInt(this.#offset - start),
        data_page_offset: BigInt(dataStart),
        ...(hasDictionary && { dictionary_page_offset: BigInt(start) }),
        ...(chunk.statistics && {
          statistics: {
            min_value: chunk.statistics.min,
            max_value: chunk.statistics.max,
            null_count: BigInt(chunk.nullCount ?? 0),
          },
        }),
      },
    }
  }

  /** Returns the page's uncompressed size, including its header. */
  #writePage(
    page: PageBuffer,
    header: Omit<PageHeader, 'uncompressed_page_size' | 'compressed_page_size'>,
    isText = false,
  ): number {
    const sizeMax = snappySizeMax(page.size)
    if (sizeMax > this.#compressed.length) this.#compressed = new Uint8Array(sizeMax + (sizeMax >>> 2))
    const compressedSize = isText
      ? this.#compressor.compressTexts(page.bytes, page.size, this.#compressed)
      : this.#compressor.compress(page.bytes, page.size, this.#compressed)
    const headerBytes = new ByteWriter(64)
    writePageHeader(headerBytes, {
      ...header,
      uncompressed_page_size: page.size,
      compressed_page_size: compressedSize,
    })
    this.#write(headerBytes.getBytes())
    this.#write(this.#compressed.subarray(0, compressedSize))
    return headerBytes.index + page.size
  }
}

/**
 * Sets the element type of the empty list of row groups in place. hyparquet-writer leaves an empty list untyped, which
 * arrow-rs refuses ("Expected list element type of Struct"). The list is the field before the key-values, or before
 * `created_by` if there are none. Its header and length take one byte each, and so do those of the next field.
 */
function typeEmptyRowGroupList(footer: Uint8Array, firstKey: string | undefined): void {
  const text = Buffer.from(footer.buffer, footer.byteOffset, footer.length)
  const listAt = firstKey === undefined ? text.lastIndexOf(CREATED_BY) - 3 : text.indexOf(firstKey) - 5
  assert(footer[listAt - 1] === THRIFT_LIST_FIELD && footer[listAt] === 0, 'no empty list of row groups')
  footer[listAt] = THRIFT_STRUCT
}
