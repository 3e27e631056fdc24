// The interface between the parquet file writer and its columns: a leaf of the schema encodes its buffered rows into the pages
// of one column chunk.

import type { Encoding, MinMaxType, ParquetType, SchemaElement } from 'hyparquet/src/types.js'
import type { PageBuffer } from './parquet-pages.ts'

/** The two pages of one column chunk, before compression. */
export interface ChunkPages {
  readonly dictionary: PageBuffer
  readonly data: PageBuffer
}

export interface EncodedChunk {
  /** Entries of the data page: an empty list or a null counts as one. */
  readonly valueCount: number
  /** 0: the chunk has no dictionary page. */
  readonly dictionaryCount: number
  readonly encoding: Encoding
  readonly nullCount?: number
  readonly statistics?: { readonly min: MinMaxType; readonly max: MinMaxType }
}

/** One leaf of the schema: one column chunk per row group. */
export interface LeafColumn {
  readonly path: readonly string[]
  readonly type: ParquetType
  encode(pages: ChunkPages): EncodedChunk
}

/** One requested column: its schema elements in depth-first order, and its leaves. */
export interface BufferedColumn {
  readonly schema: readonly SchemaElement[]
  readonly leaves: readonly LeafColumn[]
  /** Removes all rows and keeps the memory. */
  clear(): void
}
