// The footer of a lob.v1 file. hyparquet-writer serializes the thrift. The key-value pairs are added here, after the
// data, because their figures are only known then. Their order and text are fixed, so equal rows give equal bytes.

import { ByteWriter } from 'hyparquet-writer/src/bytewriter.js'
import { writeMetadata } from 'hyparquet-writer/src/metadata.js'
import type { FileMetaData, RowGroup, SchemaElement } from 'hyparquet'
import { writeLobFooterChecksum } from '../../shared/lob-checksum.ts'
import { KEYFRAMES_HOURLY, LOB_COLUMNS, LOB_FOOTER_KEYS as KEYS, LOB_SCHEMA } from '../../shared/lob-v1.ts'
import type { LobRowFigures } from './lob-summary.ts'

export const PARQUET_MAGIC = Buffer.from('PAR1')
const CREATED_BY = 'bookcast'
// hyparquet-writer truncates text bounds to 16 bytes by default; a market id must stay whole.
const NO_TRUNCATION = Number.MAX_SAFE_INTEGER

/** The order books of a series and date. */
export interface LobDate {
  readonly series: string
  readonly date: string
  /** ns, both inclusive. */
  readonly coversFrom: bigint
  readonly coversTo: bigint
}

/** What the writer knows of a file besides its rows. */
export interface LobFileLabels extends LobDate {
  readonly source: string
  /** The books are sample data. */
  readonly isSample?: boolean | undefined
}

/** Offsets and checksums of the file's data. */
export interface LobFileParts {
  readonly rowGroups: readonly RowGroup[]
  readonly columnCrc32: readonly (readonly string[])[]
}

/** Footer, its length and the closing magic: everything after the last data page. */
export function encodeLobFooter(
  labels: LobFileLabels,
  figures: LobRowFigures,
  parts: LobFileParts,
): Uint8Array {
  const writer = new ByteWriter()
  const metadata: FileMetaData = {
    version: 1,
    schema: schemaElements(),
    num_rows: BigInt(figures.rows),
    row_groups: [...parts.rowGroups],
    key_value_metadata: keyValues(labels, figures, parts),
    created_by: CREATED_BY,
    metadata_length: 0,
  }
  writeMetadata(writer, metadata, NO_TRUNCATION)
  const lengthBytes = 4
  writeLobFooterChecksum(new Uint8Array(writer.buffer, 0, writer.index - lengthBytes))
  writer.appendBytes(PARQUET_MAGIC)
  return writer.getBytes()
}

/** The market list as the footer writes it. Instants are JSON integers beyond 2^53: parse them as such. */
export function marketsText(figures: LobRowFigures): string {
  const items = figures.markets.map(
    (market) =>
      `{"id":${JSON.stringify(market.id)},"rows":${market.rows},"first_ts":${market.firstTs},` +
      `"last_ts":${market.lastTs},"first_book_ts":${market.firstBookTs},"book_at_end":${market.bookAtEnd}}`,
  )
  return `[${items.join(',')}]`
}

// No logical type on event and side: hyparquet-writer would write its bit width as a wider thrift type than the format
// specifies. The converted type UINT_8 means the same, and every reader knows it.
function schemaElements(): SchemaElement[] {
  const columns = LOB_COLUMNS.map(({ name, type }): SchemaElement => {
    const element: SchemaElement = { name, type, repetition_type: 'REQUIRED' }
    if (name === 'market_id') return { ...element, converted_type: 'UTF8', logical_type: { type: 'STRING' } }
    if (name === 'event' || name === 'side') return { ...element, converted_type: 'UINT_8' }
    return element
  })
  return [{ name: 'lob', num_children: columns.length }, ...columns]
}

function keyValues(
  labels: LobFileLabels,
  figures: LobRowFigures,
  { columnCrc32 }: LobFileParts,
): { key: string; value: string }[] {
  const pairs: (readonly [string, string])[] = [
    [KEYS.schema, LOB_SCHEMA],
    [KEYS.source, labels.source],
    [KEYS.series, labels.series],
    [KEYS.date, labels.date],
    [KEYS.rows, String(figures.rows)],
    [KEYS.minTs, String(figures.minTs)],
    [KEYS.maxTs, String(figures.maxTs)],
    [KEYS.coversFrom, String(labels.coversFrom)],
    [KEYS.coversTo, String(labels.coversTo)],
    [KEYS.gaps, String(figures.gaps)],
    ...(figures.hours === undefined ? [] : ([[KEYS.hours, figures.hours]] as const)),
    [KEYS.markets, marketsText(figures)],
    [KEYS.keyframes, KEYFRAMES_HOURLY],
    ...(labels.isSample === true ? ([[KEYS.sample, 'true']] as const) : []),
    [KEYS.columnCrc32, JSON.stringify(columnCrc32)],
    [KEYS.footerCrc32, '00000000'],
  ]
  return pairs.map(([key, value]) => ({ key, value }))
}
