// Encodes one lob.v1 row group as parquet pages, with parquet-wasm. Each group is written as a separate file, of which only the
// pages are kept. So a group ends exactly where the caller ends it, an encoder error is thrown (the streaming writer swallows it),
// and only one group at a time is in WebAssembly memory, which never shrinks.

import { createRequire } from 'node:module'
import type { Data, Int64 as Int64Type, RecordBatch as Batch, Uint8 as Uint8Type } from 'apache-arrow'
import { parquetMetadata } from 'hyparquet'
import type { ColumnMetaData, RowGroup } from 'hyparquet'
import type { WriterProperties } from 'parquet-wasm/node'
import { LOB_ROW_GROUP_ROWS_MAX } from '../../shared/limits.ts'
import type { LobRowGroup } from './lob-row-group.ts'

// Times and sequence numbers rise in small steps: deltas pack best, and a dictionary would contain every value.
const DELTA_COLUMNS = ['ts', 'recv_ts', 'seq']
const MAGIC_BYTES = 4

const require = createRequire(import.meta.url)

/** Loads the encoder, which takes longer than loading all other modules of a command. */
function loadEncoder() {
  const parquet = require('parquet-wasm/node') as typeof import('parquet-wasm/node')
  // The package's single-file build: a thread that writes files starts a third sooner than with its many modules.
  const arrow = require('apache-arrow/Arrow.esnext.min') as typeof import('apache-arrow')
  const { Dictionary, Field, Int32, Int64, Schema, Uint8, Utf8 } = arrow
  const marketType = new Dictionary(new Utf8(), new Int32(), 1, false)
  // Not nullable, hence REQUIRED in the file: there are no definition levels to read.
  const schema = new Schema([
    new Field('ts', new Int64(), false),
    new Field('recv_ts', new Int64(), false),
    new Field('seq', new Int64(), false),
    new Field('market_id', marketType, false),
    new Field('event', new Uint8(), false),
    new Field('side', new Uint8(), false),
    new Field('price', new Int32(), false),
    new Field('qty', new Int64(), false),
  ])
  return { parquet, arrow, marketType, schema }
}

type Encoder = ReturnType<typeof loadEncoder>

let encoder: Encoder | undefined

/** The pages of one row group, and its column metadata with offsets relative to the first page's byte 0. */
export interface LobPages {
  readonly bytes: Uint8Array
  readonly rowGroup: RowGroup
}

/** Encodes the rows in `group` (at least one). Throws when parquet-wasm does. */
export function encodeLobPages(group: LobRowGroup): LobPages {
  encoder ??= loadEncoder()
  const { arrow, parquet } = encoder
  const batches = new arrow.Table([recordBatch(group, encoder)])
  const table = parquet.Table.fromIPCStream(arrow.tableToIPC(batches, 'stream'))
  const file = parquet.writeParquet(table, writerProperties(parquet))
  const rowGroups = parquetMetadata(file).row_groups
  const rowGroup = rowGroups[0]
  if (rowGroups.length !== 1 || rowGroup === undefined || Number(rowGroup.num_rows) !== group.rows) {
    throw new Error(`parquet-wasm made ${rowGroups.length} row groups of ${group.rows} rows, expected one`)
  }
  const end = rowGroup.columns.reduce((last, column) => Math.max(last, chunkRange(metaOf(column)).end), 0)
  return { bytes: file.subarray(MAGIC_BYTES, end), rowGroup: relocated(rowGroup, group) }
}

/** The range of a column chunk in its file: its dictionary page, if any, and its data pages. */
export function chunkRange(meta: ColumnMetaData): { start: number; end: number } {
  const dictionary = meta.dictionary_page_offset
  const start = Number(dictionary === undefined || dictionary === 0n ? meta.data_page_offset : dictionary)
  return { start, end: start + Number(meta.total_compressed_size) }
}

/** A column chunk's metadata, which files of this writer always have. */
export function metaOf(column: RowGroup['columns'][number]): ColumnMetaData {
  if (column.meta_data === undefined) throw new Error('a column chunk without metadata')
  return column.meta_data
}

function writerProperties({
  Compression,
  EnabledStatistics,
  Encoding,
  WriterPropertiesBuilder,
}: Encoder['parquet']): WriterProperties {
  let properties = new WriterPropertiesBuilder()
    .setCompression(Compression.ZSTD)
    .setStatisticsEnabled(EnabledStatistics.Chunk)
    .setMaxRowGroupSize(LOB_ROW_GROUP_ROWS_MAX)
  for (const column of DELTA_COLUMNS) {
    properties = properties
      .setColumnDictionaryEnabled(column, false)
      .setColumnEncoding(column, Encoding.DELTA_BINARY_PACKED)
  }
  return properties.build()
}

function recordBatch(group: LobRowGroup, { arrow, marketType, schema }: Encoder): Batch {
  const { Int32, Int64, RecordBatch, Struct, Uint8, Utf8, makeData, vectorFromArray } = arrow
  const length = group.rows
  const common = { length, nullCount: 0 }
  const int64 = (data: BigInt64Array): Data<Int64Type> =>
    makeData({ ...common, type: new Int64(), data: data.subarray(0, length) })
  const uint8 = (data: Uint8Array): Data<Uint8Type> =>
    makeData({ ...common, type: new Uint8(), data: data.subarray(0, length) })
  const children = [
    int64(group.ts),
    int64(group.recvTs),
    int64(group.seq),
    makeData({
      ...common,
      type: marketType,
      data: group.market.subarray(0, length),
      dictionary: vectorFromArray(group.markets, new Utf8()),
    }),
    uint8(group.event),
    uint8(group.side),
    makeData({ ...common, type: new Int32(), data: group.price.subarray(0, length) }),
    int64(group.qty),
  ]
  return new RecordBatch(schema, makeData({ ...common, type: new Struct(schema.fields), children }))
}

// The page index that parquet-wasm appends is dropped with the small file's footer, so nothing may point to it.
function relocated(rowGroup: RowGroup, group: LobRowGroup): RowGroup {
  const columns = rowGroup.columns.map((column) => {
    const meta = metaOf(column)
    const moved: ColumnMetaData = {
      type: meta.type,
      encodings: meta.encodings,
      path_in_schema: meta.path_in_schema,
      codec: meta.codec,
      num_values: meta.num_values,
      total_uncompressed_size: meta.total_uncompressed_size,
      total_compressed_size: meta.total_compressed_size,
      data_page_offset: meta.data_page_offset - BigInt(MAGIC_BYTES),
    }
    if (meta.dictionary_page_offset) {
      moved.dictionary_page_offset = meta.dictionary_page_offset - BigInt(MAGIC_BYTES)
    }
    if (meta.encoding_stats) moved.encoding_stats = meta.encoding_stats
    moved.statistics = statisticsOf(meta, group)
    return { file_offset: 0n, meta_data: moved }
  })
  return {
    columns,
    total_byte_size: rowGroup.total_byte_size,
    num_rows: rowGroup.num_rows,
    file_offset: 0n,
    total_compressed_size: columns.reduce((sum, column) => sum + column.meta_data.total_compressed_size, 0n),
  }
}

// parquet-wasm truncates text bounds to 64 bytes, which all tokens of one condition share. Without the whole id a
// reader could not skip the groups of other tokens.
function statisticsOf(meta: ColumnMetaData, group: LobRowGroup): NonNullable<ColumnMetaData['statistics']> {
  const exact = { null_count: 0n, is_max_value_exact: true, is_min_value_exact: true }
  const { min_value: min, max_value: max } = meta.statistics ?? {}
  if (meta.path_in_schema[0] === 'market_id') {
    return { ...exact, min_value: group.markets[0]!, max_value: group.markets.at(-1)! }
  }
  if (min === undefined || max === undefined) throw new Error(`no statistics of ${meta.path_in_schema[0]}`)
  return { ...exact, min_value: min, max_value: max }
}
