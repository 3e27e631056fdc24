// Reads a freshly written lob.v1 file back, every byte of it, and compares it with what its footer says. Made for the
// writer, which owns the file; it does not accept the foreign files that the order-book reader accepts.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import type { FileMetaData } from 'hyparquet'
import { crc32Hex } from '../../shared/lob-checksum.ts'
import { LOB_COLUMNS, LOB_FOOTER_KEYS as KEYS, LOB_SCHEMA } from '../../shared/lob-v1.ts'
import { PARQUET_MAGIC, marketsText } from './lob-footer.ts'
import { fillColumn, footerValue, readBytes, readLobFooter, readRowGroup } from './lob-file-reading.ts'
import { chunkRange, metaOf } from './lob-parquet-pages.ts'
import { LobFigures, type LobRunColumns } from './lob-summary.ts'

/** Throws an error that names the file and the first thing that differs; fulfilled when the file is whole. */
export async function verifyLobFile(path: string): Promise<void> {
  const file = await open(path)
  try {
    const sizeBytes = (await file.stat()).size
    const { metadata, dataEnd, isChecked } = await readLobFooter(file, sizeBytes)
    if (!isChecked) throw new Error('no footer checksum')
    const head = await readBytes(file, 0, PARQUET_MAGIC.length)
    if (!head.equals(PARQUET_MAGIC)) throw new Error('no PAR1')
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
  let offset = PARQUET_MAGIC.length
  for (const [groupIndex, rowGroup] of metadata.row_groups.entries()) {
    for (const [columnIndex, column] of rowGroup.columns.entries()) {
      const { start, end } = chunkRange(metaOf(column))
      const where = `row group ${groupIndex}, column ${LOB_COLUMNS[columnIndex]?.name}`
      if (start !== offset || end > dataEnd) throw new Error(`${where}: offset`)
      const computed = crc32Hex(await readBytes(file, start, end))
      if (computed !== checksums[groupIndex]?.[columnIndex]) throw new Error(`${where}: checksum`)
      offset = end
    }
  }
  if (offset !== dataEnd) throw new Error('bytes between data and footer')
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
  if (footerValue(metadata, KEYS.hours) !== found.hours) throw new Error(`footer value of ${KEYS.hours}`)
  if (metadata.num_rows !== BigInt(found.rows)) throw new Error('row count')
}

function addRuns(figures: LobFigures, { market, ...columns }: DecodedRows, rows: number): void {
  let from = 0
  for (let row = 1; row <= rows; row++) {
    if (row < rows && market[row] === market[from]) continue
    figures.addRun(market[from]!, columns, from, row)
    from = row
  }
}

interface DecodedRows extends LobRunColumns {
  readonly market: ArrayLike<string>
}

// Decodes every column, because a column that does not decode is damage, but keeps only what the figures need.
async function decodeRowGroup(
  file: FileHandle,
  sizeBytes: number,
  metadata: FileMetaData,
  rowStart: number,
  rowEnd: number,
): Promise<DecodedRows> {
  const columns = await readRowGroup(file, sizeBytes, metadata, rowStart, rowEnd)
  const rows = rowEnd - rowStart
  for (const { name } of LOB_COLUMNS) {
    const chunks = columns.get(name) ?? []
    if (chunks.reduce((sum, chunk) => sum + chunk.length, 0) !== rows)
      throw new Error(`rows of column ${name}`)
  }
  const decoded = {
    market: Array.from<string>({ length: rows }),
    ts: new BigInt64Array(rows),
    recvTs: new BigInt64Array(rows),
    event: new Uint8Array(rows),
  }
  fillColumn(decoded.market, columns.get('market_id')!)
  fillColumn(decoded.ts, columns.get('ts')!)
  fillColumn(decoded.recvTs, columns.get('recv_ts')!)
  fillColumn(decoded.event, columns.get('event')!)
  return decoded
}

function valueOf(metadata: FileMetaData, key: string): string {
  const value = footerValue(metadata, key)
  if (value === undefined) throw new Error(`no footer value ${key}`)
  return value
}
