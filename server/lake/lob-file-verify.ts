// Reads a freshly written lob.v1 file back, every byte of it, and compares it with what its footer says. Made for the
// writer, which owns the file; it does not accept the foreign files that the order-book reader accepts.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { parquetMetadata, parquetRead } from 'hyparquet'
import type { ColumnData, DecodedArray, FileMetaData } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'
import { FOOTER_BYTES_MAX } from '../../shared/limits.ts'
import { crc32Hex, lobFooterChecksum } from '../../shared/lob-checksum.ts'
import { LOB_COLUMNS, LOB_FOOTER_KEYS as KEYS, LOB_SCHEMA } from '../../shared/lob-v1.ts'
import { PARQUET_MAGIC, marketsText } from './lob-footer.ts'
import { parsePlaces } from './lob-evidence.ts'
import type { EvidencePlace } from './lob-evidence.ts'
import { chunkRange, metaOf } from './lob-parquet-pages.ts'
import { LobFigures } from './lob-summary.ts'

const TRAILER_BYTES = 8

/** Throws an error that names the file and the first thing that differs; fulfilled when the file is whole. */
export async function verifyLobFile(path: string): Promise<void> {
  const file = await open(path)
  try {
    const sizeBytes = (await file.stat()).size
    const { metadata, dataEnd } = await readFooter(file, sizeBytes)
    checkSchema(metadata)
    await checkChunks(file, metadata, dataEnd)
    await checkFigures(file, sizeBytes, metadata)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new Error(`${path} does not read back as it was written: ${reason}`, { cause: error })
  } finally {
    await file.close()
  }
}

async function readFooter(
  file: FileHandle,
  sizeBytes: number,
): Promise<{ metadata: FileMetaData; dataEnd: number }> {
  if (sizeBytes < PARQUET_MAGIC.length + TRAILER_BYTES) throw new Error('it is too short')
  const head = await readBytes(file, 0, PARQUET_MAGIC.length)
  const trailer = await readBytes(file, sizeBytes - TRAILER_BYTES, sizeBytes)
  if (!head.equals(PARQUET_MAGIC) || !trailer.subarray(4).equals(PARQUET_MAGIC)) throw new Error('no PAR1')
  const footerBytes = trailer.readUInt32LE(0)
  const dataEnd = sizeBytes - TRAILER_BYTES - footerBytes
  if (footerBytes > FOOTER_BYTES_MAX || dataEnd < PARQUET_MAGIC.length) throw new Error('footer length')
  const footer = await readBytes(file, dataEnd, sizeBytes)
  const checksum = lobFooterChecksum(footer.subarray(0, footerBytes))
  if (checksum === undefined || checksum.stored !== checksum.computed) throw new Error('footer checksum')
  return { metadata: parquetMetadata(footer, { geoparquet: false }), dataEnd }
}

function checkSchema(metadata: FileMetaData): void {
  const columns = metadata.schema.slice(1)
  const isRight =
    columns.length === LOB_COLUMNS.length &&
    LOB_COLUMNS.every(({ name, type }, index) => {
      const column = columns[index]!
      return column.name === name && column.type === type && column.repetition_type === 'REQUIRED'
    })
  if (!isRight || valueOf(metadata, KEYS.schema) !== LOB_SCHEMA) throw new Error('schema')
}

// The chunks must follow each other without a hole: then magic, chunks and footer are every byte of the file.
async function checkChunks(file: FileHandle, metadata: FileMetaData, dataEnd: number): Promise<void> {
  const checksums: unknown = JSON.parse(valueOf(metadata, KEYS.columnCrc32))
  if (!Array.isArray(checksums)) throw new Error('no list of checksums')
  if (checksums.length !== metadata.row_groups.length) throw new Error('number of row groups')
  const evidence = evidenceOf(metadata)
  let offset = PARQUET_MAGIC.length
  const passEvidence = async (): Promise<void> => {
    for (; evidence[0]?.offset === offset; evidence.shift()) {
      const { sizeBytes, crc32 } = evidence[0]
      const isRight = crc32Hex(await readBytes(file, offset, offset + sizeBytes)) === crc32
      if (!isRight) throw new Error('checksum of evidence')
      offset += sizeBytes
    }
  }
  for (const [groupIndex, rowGroup] of metadata.row_groups.entries()) {
    await passEvidence()
    for (const [columnIndex, column] of rowGroup.columns.entries()) {
      const { start, end } = chunkRange(metaOf(column))
      const where = `row group ${groupIndex}, column ${LOB_COLUMNS[columnIndex]?.name}`
      if (start !== offset || end > dataEnd) throw new Error(`${where}: offset`)
      const computed = crc32Hex(await readBytes(file, start, end))
      if (computed !== checksums[groupIndex]?.[columnIndex]) throw new Error(`${where}: checksum`)
      offset = end
    }
  }
  await passEvidence()
  if (offset !== dataEnd || evidence.length > 0) throw new Error('bytes between data and footer')
}

function evidenceOf(metadata: FileMetaData): EvidencePlace[] {
  const text = metadata.key_value_metadata?.find((pair) => pair.key === KEYS.evidence)?.value
  return text === undefined ? [] : parsePlaces(text)
}

async function checkFigures(file: FileHandle, sizeBytes: number, metadata: FileMetaData): Promise<void> {
  const figures = new LobFigures()
  let rowStart = 0
  for (const rowGroup of metadata.row_groups) {
    const rowEnd = rowStart + Number(rowGroup.num_rows)
    const rows = await decodeRowGroup(file, sizeBytes, metadata, rowStart, rowEnd)
    addRuns(figures, rows, rowEnd - rowStart)
    rowStart = rowEnd
  }
  const found = figures.result()
  const expected = new Map([
    [KEYS.rows, String(found.rows)],
    [KEYS.minTs, String(found.minTs)],
    [KEYS.maxTs, String(found.maxTs)],
    [KEYS.gaps, String(found.gaps)],
    [KEYS.markets, marketsText(found)],
  ])
  for (const [key, value] of expected) {
    if (valueOf(metadata, key) !== value) throw new Error(`footer value of ${key}`)
  }
  if (metadata.num_rows !== BigInt(found.rows)) throw new Error('row count')
}

function addRuns(figures: LobFigures, { market, ts, event }: DecodedRows, rows: number): void {
  let from = 0
  for (let row = 1; row <= rows; row++) {
    if (row < rows && market[row] === market[from]) continue
    figures.addRun(market[from]!, ts, event, from, row)
    from = row
  }
}

interface DecodedRows {
  readonly market: ArrayLike<string>
  readonly ts: ArrayLike<bigint>
  readonly event: ArrayLike<number>
}

// Decodes every column, because a column that does not decode is damage, but keeps only what the figures need.
async function decodeRowGroup(
  file: FileHandle,
  sizeBytes: number,
  metadata: FileMetaData,
  rowStart: number,
  rowEnd: number,
): Promise<DecodedRows> {
  const columns = new Map<string, DecodedArray[]>()
  await parquetRead({
    file: {
      byteLength: sizeBytes,
      slice: async (start, end = sizeBytes) => new Uint8Array(await readBytes(file, start, end)).buffer,
    },
    metadata,
    rowStart,
    rowEnd,
    compressors,
    onChunk: ({ columnName, columnData }: ColumnData) => {
      const chunks = columns.get(columnName)
      if (chunks === undefined) columns.set(columnName, [columnData])
      else chunks.push(columnData)
    },
  })
  const rows = rowEnd - rowStart
  for (const { name } of LOB_COLUMNS) {
    const chunks = columns.get(name) ?? []
    if (chunks.reduce((sum, chunk) => sum + chunk.length, 0) !== rows)
      throw new Error(`rows of column ${name}`)
  }
  const decoded = {
    market: Array.from<string>({ length: rows }),
    ts: new BigInt64Array(rows),
    event: new Uint8Array(rows),
  }
  fill(decoded.market, columns.get('market_id')!)
  fill(decoded.ts, columns.get('ts')!)
  fill(decoded.event, columns.get('event')!)
  return decoded
}

// A loop, because Array.from and flat take several times as long on typed arrays. hyparquet types a decoded value as
// `any`: which it is follows from the schema, which has been checked.
function fill<T>(target: { [row: number]: T }, chunks: readonly DecodedArray[]): void {
  let row = 0
  for (const chunk of chunks) {
    for (let i = 0; i < chunk.length; i++) target[row++] = chunk[i]
  }
}

function valueOf(metadata: FileMetaData, key: string): string {
  const value = metadata.key_value_metadata?.find((pair) => pair.key === key)?.value
  if (value === undefined) throw new Error(`no footer value ${key}`)
  return value
}

async function readBytes(file: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start)
  let done = 0
  while (done < bytes.length) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, start + done)
    if (bytesRead === 0) throw new Error('it ends too early')
    done += bytesRead
  }
  return bytes
}
