// Parses the footer of an order-book file: checks the schema, locates the row groups, and reads markets and coverage from the
// key-value metadata. Rule: contract.md 35. Instants become ns after the file's UTC midnight, as doubles, which are exact within
// a hundred days of it.

import { createHash } from 'node:crypto'
import { parquetMetadata, type FileMetaData, type SchemaElement, type SchemaTree } from 'hyparquet'
import { getSchemaPath } from 'hyparquet/src/schema.js'
import { lobFooterChecksum } from '../lob-checksum.ts'
import { KEYFRAMES_HOURLY, LOB_COLUMNS, LOB_FOOTER_KEYS, LOB_SCHEMA } from '../lob-v1.ts'
import type { ColumnChunk } from './column-pages.ts'
import { refuseLongId } from './plain-values.ts'

type ColumnName = (typeof LOB_COLUMNS)[number]['name']

/** One row group: the positions of its columns and, if the footer has statistics, its span. */
export interface RowGroup {
  readonly rows: number
  readonly columns: Readonly<Record<ColumnName, ColumnChunk>>
  readonly tsMin: number | undefined
  readonly tsMax: number | undefined
  readonly marketMin: string | undefined
  readonly marketMax: string | undefined
}

/**
 * A market of a file: its first row (null: not stated), its last row, and `firstBook`, its first `clear` (null: the book is never
 * known from this file alone).
 */
export interface FooterMarket {
  readonly id: string
  readonly first: number | null
  readonly firstBook: number | null
  readonly last: number
  readonly bookAtEnd: boolean | null
}

/** A parsed footer. Values that the metadata does not state are undefined, false or 0. */
export interface FileFooter {
  readonly rows: number
  readonly rowGroups: readonly RowGroup[]
  readonly coversFrom: number | undefined
  readonly coversTo: number | undefined
  readonly markets: readonly FooterMarket[] | undefined
  readonly hasHourlyKeyframes: boolean
  readonly gaps: number
  /** A digest of the footer, if it has the checksums of all columns: it identifies the contents of the file. */
  readonly contents: string | undefined
}

/**
 * Parses the last bytes of a file: the Thrift footer, its length and the magic. `date` is the file's date and `baseNs` its
 * midnight. Throws a plain Error with the reason.
 */
export function parseFooter(tail: Uint8Array, fileBytes: number, date: string, baseNs: bigint): FileFooter {
  const metadata = parquetMetadata(
    tail.buffer.slice(tail.byteOffset, tail.byteOffset + tail.byteLength) as ArrayBuffer,
  )
  const keyValues = new Map(metadata.key_value_metadata?.map(({ key, value }) => [key, value ?? '']))
  const thriftBytes = new DataView(tail.buffer, tail.byteOffset, tail.byteLength).getUint32(
    tail.length - 8,
    true,
  )
  const thrift = tail.subarray(tail.length - 8 - thriftBytes, tail.length - 8)
  const checksum = lobFooterChecksum(thrift)
  if (checksum !== undefined && checksum.stored !== checksum.computed) {
    throw new Error('its footer has a wrong checksum')
  }
  const schema = keyValues.get(LOB_FOOTER_KEYS.schema)
  if (schema !== undefined && schema !== LOB_SCHEMA) {
    throw new Error(`its schema is ${JSON.stringify(schema)}, not ${LOB_SCHEMA}`)
  }
  const statedDate = keyValues.get(LOB_FOOTER_KEYS.date)
  if (statedDate !== undefined && statedDate !== date) {
    throw new Error(`its metadata says date ${statedDate}, its name ${date}`)
  }
  const rowGroups = locateRowGroups(metadata, keyValues, fileBytes, baseNs)
  const rows = rowGroups.reduce((sum, group) => sum + group.rows, 0)
  const statedRows = keyValues.get(LOB_FOOTER_KEYS.rows)
  if (rows !== Number(metadata.num_rows) || (statedRows !== undefined && Number(statedRows) !== rows)) {
    throw new Error(
      `it holds ${rows} rows but its metadata says ${statedRows ?? metadata.num_rows.toString()}`,
    )
  }
  const marketsJson = keyValues.get(LOB_FOOTER_KEYS.markets)
  return {
    rows,
    rowGroups,
    coversFrom: relativeInstant(keyValues.get(LOB_FOOTER_KEYS.coversFrom), baseNs),
    coversTo: relativeInstant(keyValues.get(LOB_FOOTER_KEYS.coversTo), baseNs),
    markets: marketsJson === undefined ? undefined : parseMarkets(marketsJson, baseNs),
    gaps: Number(keyValues.get(LOB_FOOTER_KEYS.gaps) ?? 0),
    hasHourlyKeyframes: keyValues.get(LOB_FOOTER_KEYS.keyframes) === KEYFRAMES_HOURLY,
    contents: areAllChecked(rowGroups) ? createHash('sha256').update(thrift).digest('base64url') : undefined,
  }
}

function areAllChecked(rowGroups: readonly RowGroup[]): boolean {
  return rowGroups.every(({ columns }) => Object.values(columns).every(({ crc32 }) => crc32 !== undefined))
}

/** Locates the columns of each row group. Throws a plain Error if the file is not a consistent lob.v1 file. */
export function locateRowGroups(
  metadata: FileMetaData,
  keyValues: ReadonlyMap<string, string>,
  fileBytes: number,
  baseNs: bigint,
): RowGroup[] {
  const leaves = LOB_COLUMNS.map(({ name, type }) => ({ name, schemaPath: leafOf(metadata, name, type) }))
  const checksums = JSON.parse(keyValues.get(LOB_FOOTER_KEYS.columnCrc32) ?? '[]') as string[][]
  return metadata.row_groups.map((group, groupIndex) => {
    const columns = {} as Record<ColumnName, ColumnChunk>
    for (const { name, schemaPath } of leaves) {
      const position = group.columns.findIndex(
        (column) => column.meta_data?.path_in_schema.join('.') === name,
      )
      const columnMetadata = group.columns[position]?.meta_data
      if (!columnMetadata) throw new Error(`row group ${groupIndex} has no column ${name}`)
      const { dictionary_page_offset: dictionaryOffset, data_page_offset: dataOffset } = columnMetadata
      // Some writers write 0 for "no dictionary". Parquet files begin with the magic, so 0 is never an offset.
      const offset = Number(dictionaryOffset && dictionaryOffset < dataOffset ? dictionaryOffset : dataOffset)
      const sizeBytes = Number(columnMetadata.total_compressed_size)
      if (!(offset >= 4) || !(sizeBytes >= 0) || offset + sizeBytes > fileBytes) {
        throw new Error(`column ${name} of row group ${groupIndex} lies outside the file`)
      }
      const checksum = checksums[groupIndex]?.[position]
      columns[name] = {
        name,
        offset,
        sizeBytes,
        crc32: checksum === undefined ? undefined : Number.parseInt(checksum, 16),
        isOptional: schemaPath[schemaPath.length - 1]!.element.repetition_type === 'OPTIONAL',
        metadata: columnMetadata,
        schemaPath,
      }
    }
    const ts = columns.ts.metadata.statistics
    const market = columns.market_id.metadata.statistics
    return {
      rows: Number(group.num_rows),
      columns,
      tsMin: relativeStatistic(ts?.min_value, baseNs),
      tsMax: relativeStatistic(ts?.max_value, baseNs),
      marketMin: asciiStatistic(market?.min_value),
      marketMax: asciiStatistic(market?.max_value),
    }
  })
}

function leafOf(metadata: FileMetaData, name: string, type: string): SchemaTree[] {
  let schemaPath: SchemaTree[]
  try {
    schemaPath = getSchemaPath(metadata.schema, [name])
  } catch {
    throw new Error(`it has no column ${name}`)
  }
  const element: SchemaElement = schemaPath[schemaPath.length - 1]!.element
  if (element.type !== type || element.repetition_type === 'REPEATED') {
    throw new Error(`column ${name} is ${element.type ?? 'a group'}, not ${type}`)
  }
  return schemaPath
}

function relativeStatistic(value: unknown, baseNs: bigint): number | undefined {
  return typeof value === 'bigint' ? relative(value, baseNs) : undefined
}

// Statistics order strings by bytes and may truncate them; JavaScript orders them by UTF-16 unit. Both orders agree for ASCII.
function asciiStatistic(value: unknown): string | undefined {
  // eslint-disable-next-line no-control-regex
  return typeof value === 'string' && /^[\x20-\x7e]*$/.test(value) ? value : undefined
}

function relative(ns: bigint, baseNs: bigint): number {
  const value = Number(ns - baseNs)
  if (!Number.isSafeInteger(value)) throw new Error(`the instant ${ns} ns is far from its date`)
  return value
}

function relativeInstant(text: string | undefined, baseNs: bigint): number | undefined {
  if (text === undefined) return undefined
  if (!/^-?\d{1,19}$/.test(text)) throw new Error(`its metadata has the instant ${JSON.stringify(text)}`)
  return relative(BigInt(text), baseNs)
}

function parseMarkets(json: string, baseNs: bigint): FooterMarket[] {
  // JSON.parse would round 19-digit integers, so they are quoted first. Market ids are quoted already.
  const exact = json.replaceAll(/:\s*(-?\d{15,19})(?=\s*[,}\]])/g, ':"$1"')
  const list: unknown = JSON.parse(exact)
  if (!Array.isArray(list)) throw new Error('its list of markets is malformed')
  return list.map((entry: Record<string, unknown>) => {
    const { id, book_at_end: bookAtEnd } = entry
    const last = instantOf(entry['last_ts'], baseNs)
    if (typeof id !== 'string' || last === null) throw new Error('its list of markets is malformed')
    refuseLongId(Buffer.byteLength(id))
    return {
      id,
      first: instantOf(entry['first_ts'], baseNs),
      firstBook: instantOf(entry['first_book_ts'], baseNs),
      last,
      bookAtEnd: typeof bookAtEnd === 'boolean' ? bookAtEnd : null,
    }
  })
}

function instantOf(value: unknown, baseNs: bigint): number | null {
  if (typeof value !== 'string' && typeof value !== 'number') return null
  return relativeInstant(String(value), baseNs) ?? null
}
