// Order-book files as other writers make them: any order, codec, nullability and metadata. parquet-wasm writes them, so that they
// share no code with the reader under test.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import * as arrow from 'apache-arrow'
import {
  Compression,
  EnabledStatistics,
  Encoding,
  Table,
  writeParquet,
  WriterPropertiesBuilder,
} from 'parquet-wasm/node'
import { writeLobFooterChecksum } from '../../shared/lob-checksum.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { type LobSource } from '../../shared/lob-sources.ts'
import type { NaiveEvent } from './naive-lob.ts'

export const CODECS = {
  zstd: Compression.ZSTD,
  snappy: Compression.SNAPPY,
  gzip: Compression.GZIP,
  uncompressed: Compression.UNCOMPRESSED,
  brotli: Compression.BROTLI,
  lz4: Compression.LZ4_RAW,
}

export interface ForeignFile {
  readonly codec: keyof typeof CODECS
  readonly isNullable: boolean
  readonly hasDictionary: boolean
  readonly hasStatistics: boolean
  readonly rowGroupRows: number
  readonly keyValues: Readonly<Record<string, string>>
  /** Value bytes of a page; absent: the writer decides. */
  readonly pageBytes?: number
  /** Of the market ids, if there is no dictionary; default: PLAIN. */
  readonly idEncoding?: keyof typeof Encoding
}

export const PLAIN_FOREIGN_FILE: ForeignFile = {
  codec: 'zstd',
  isNullable: false,
  hasDictionary: true,
  hasStatistics: true,
  rowGroupRows: 1000,
  keyValues: {},
}

/** Writes events, in the given order, as one parquet file of the lob.v1 columns. */
export function writeForeignFile(path: string, events: readonly NaiveEvent[], file: ForeignFile): void {
  const { isNullable } = file
  const vector = (type: arrow.DataType, values: readonly unknown[]): arrow.Vector =>
    arrow.vectorFromArray(values as never[], type)
  const columns: [string, arrow.Vector][] = [
    [
      'ts',
      vector(
        new arrow.Int64(),
        events.map(({ ts }) => ts),
      ),
    ],
    [
      'recv_ts',
      vector(
        new arrow.Int64(),
        events.map(({ ts }) => ts),
      ),
    ],
    [
      'seq',
      vector(
        new arrow.Int64(),
        events.map((_, index) => BigInt(index)),
      ),
    ],
    [
      'market_id',
      vector(
        new arrow.Utf8(),
        events.map(({ marketId }) => marketId),
      ),
    ],
    [
      'event',
      vector(
        new arrow.Uint8(),
        events.map(({ event }) => event),
      ),
    ],
    [
      'side',
      vector(
        new arrow.Uint8(),
        events.map(({ side }) => side),
      ),
    ],
    [
      'price',
      vector(
        new arrow.Int32(),
        events.map(({ price }) => price),
      ),
    ],
    [
      'qty',
      vector(
        new arrow.Int64(),
        events.map(({ qty }) => BigInt(qty)),
      ),
    ],
  ]
  const schema = new arrow.Schema(
    columns.map(([name, column]) => new arrow.Field(name, column.type, isNullable)),
  )
  const data = arrow.makeData({
    type: new arrow.Struct(schema.fields),
    length: events.length,
    nullCount: 0,
    children: columns.map(([, column]) => column.data[0]!),
  })
  const table = new arrow.Table(schema, new arrow.RecordBatch(schema, data))
  const builder = new WriterPropertiesBuilder()
    .setCompression(CODECS[file.codec])
    .setDictionaryEnabled(file.hasDictionary)
    .setStatisticsEnabled(file.hasStatistics ? EnabledStatistics.Chunk : EnabledStatistics.None)
    .setMaxRowGroupSize(file.rowGroupRows)
    .setColumnEncoding('market_id', Encoding[file.idEncoding ?? 'PLAIN'])
    .setKeyValueMetadata(new Map(Object.entries(file.keyValues)))
  const { pageBytes } = file
  const paged =
    pageBytes === undefined ? builder : builder.setDataPageSizeLimit(pageBytes).setWriteBatchSize(64)
  const bytes = writeParquet(Table.fromIPCStream(arrow.tableToIPC(table, 'stream')), paged.build())
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, bytes)
}

/** Writes one date's events below a lake's root. */
export function writeForeignLakeFile(
  lake: string,
  place: { source: LobSource; series: string; date: string },
  events: readonly NaiveEvent[],
  file: ForeignFile,
): string {
  const path = lobFilePath(lake, place.source, place.series, place.date)
  writeForeignFile(path, events, file)
  return path
}

/** Gives a current file the footer of version 0.1: `strands` instead of `hours`. */
export function makeOld(path: string): void {
  const bytes = readFileSync(path)
  const start = bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8)
  const at = bytes.indexOf('\u0018\u0005hours', start)
  const footer = Buffer.concat([
    bytes.subarray(start, at),
    Buffer.from('\u0018\u0007strands'),
    bytes.subarray(at + 7, bytes.length - 8),
  ])
  writeLobFooterChecksum(footer)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(footer.length)
  writeFileSync(path, Buffer.concat([bytes.subarray(0, start), footer, length, Buffer.from('PAR1')]))
}
