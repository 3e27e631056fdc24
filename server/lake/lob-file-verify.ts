// Reads a freshly written lob.v1 file back, every byte of it, with the decoders that serve it, and compares it with its footer. The
// writer uses it for its own files; it does not accept the foreign files that the order-book reader accepts.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { messageOf } from '../../shared/error-message.ts'
import { type ColumnChunk, visitPages } from '../../shared/lob-file/column-pages.ts'
import { decodeInt32, decodeInt64, decodeLags, decodeStrings } from '../../shared/lob-file/decode-column.ts'
import { prepareDecompression } from '../../shared/lob-file/decompress.ts'
import { locateRowGroups, type RowGroup } from '../../shared/lob-file/file-footer.ts'
import { EVENT_GAP, LOB_COLUMNS, LOB_FOOTER_KEYS as KEYS, LOB_SCHEMA } from '../../shared/lob-v1.ts'
import { NS_PER_MS, utcDateStartMs } from '../../shared/utc-date.ts'
import { PARQUET_MAGIC, marketsText } from './lob-footer.ts'
import { type LobFooterParts, readBytes, readLobFooter } from './lob-file-reading.ts'
import { LobFigures } from './lob-summary.ts'

const NOTHING = { dictionary: () => {}, values: () => {} }

/** Throws an error that names the file and the first difference; resolves when the file is intact. */
export async function verifyLobFile(path: string): Promise<void> {
  await prepareDecompression()
  const file = await open(path)
  try {
    const sizeBytes = (await file.stat()).size
    const footer = await readLobFooter(file, sizeBytes)
    if (!footer.isChecked) throw new Error('no footer checksum')
    const head = await readBytes(file, 0, PARQUET_MAGIC.length)
    if (!head.equals(PARQUET_MAGIC)) throw new Error('no PAR1')
    checkSchema(footer)
    checkFigures(footer, await readFigures(file, footer))
  } catch (error) {
    const reason = messageOf(error)
    throw new Error(`${path} does not read back as it was written: ${reason}`, { cause: error })
  } finally {
    await file.close()
  }
}

function checkSchema({ metadata, values }: LobFooterParts): void {
  const columns = metadata.schema.slice(1)
  const isRight =
    columns.length === LOB_COLUMNS.length &&
    LOB_COLUMNS.every(({ name, type }, index) => {
      const column = columns[index]!
      return column.name === name && column.type === type && column.repetition_type === 'REQUIRED'
    })
  if (!isRight || valueOf(values, KEYS.schema) !== LOB_SCHEMA) throw new Error('schema')
}

// The chunks must be contiguous: then magic, chunks and footer are every byte of the file.
async function readFigures(file: FileHandle, footer: LobFooterParts): Promise<LobFigures> {
  const { metadata, values, dataEnd } = footer
  const figures = new LobFigures()
  const startMs = utcDateStartMs(valueOf(values, KEYS.date))
  if (startMs === undefined) throw new Error(`footer value of ${KEYS.date}`)
  const midnight = BigInt(startMs) * NS_PER_MS
  const checksums = JSON.parse(valueOf(values, KEYS.columnCrc32)) as readonly unknown[]
  if (checksums.length !== metadata.row_groups.length) throw new Error('number of row groups')
  let offset = PARQUET_MAGIC.length
  for (const [groupIndex, group] of locateRowGroups(metadata, values, dataEnd, midnight).entries()) {
    const bytesOf = new Map<string, Buffer>()
    for (const { name } of LOB_COLUMNS) {
      const chunk = group.columns[name]
      const where = `row group ${groupIndex}, column ${name}`
      const end = chunk.offset + chunk.sizeBytes
      if (chunk.offset !== offset || end > dataEnd) throw new Error(`${where}: offset`)
      const bytes = await readBytes(file, offset, end)
      if (crc32(bytes) !== chunk.crc32) throw new Error(`${where}: checksum`)
      bytesOf.set(name, bytes)
      offset = end
    }
    addGroup(figures, group, midnight, bytesOf)
  }
  if (offset !== dataEnd) throw new Error('bytes between data and footer')
  return figures
}

/** Unpacks every column, to find damage, but decodes only the columns that the figures need. */
function addGroup(
  figures: LobFigures,
  { rows, columns }: RowGroup,
  midnight: bigint,
  bytesOf: ReadonlyMap<string, Uint8Array>,
): void {
  const of = (name: keyof typeof columns): [Uint8Array, ColumnChunk] => [bytesOf.get(name)!, columns[name]]
  const ids: string[] = []
  const market = decodeStrings(...of('market_id'), rows, (id) => ids.push(id) - 1)
  const ts = decodeInt64(...of('ts'), rows, midnight)
  const lag = decodeLags(...of('recv_ts'), ts, midnight)
  const event = decodeInt32(...of('event'), rows, EVENT_GAP)
  for (const name of ['seq', 'side', 'price', 'qty'] as const)
    visitPages(...of(name), rows, { start: 0, stop: rows }, NOTHING)
  for (let from = 0, row = 1; row <= rows; row++) {
    if (row < rows && market[row] === market[from]) continue
    figures.addRun(ids[market[from]!]!, midnight, { ts, lag, event }, from, row)
    from = row
  }
}

function checkFigures({ metadata, values }: LobFooterParts, figures: LobFigures): void {
  const found = figures.result()
  const expected = new Map([
    [KEYS.rows, String(found.rows)],
    [KEYS.minTs, String(found.minTs)],
    [KEYS.maxTs, String(found.maxTs)],
    [KEYS.gaps, String(found.gaps)],
    [KEYS.markets, marketsText(found)],
  ])
  for (const [key, value] of expected) {
    if (valueOf(values, key) !== value) throw new Error(`footer value of ${key}`)
  }
  if (values.get(KEYS.hours) !== found.hours) throw new Error(`footer value of ${KEYS.hours}`)
  if (metadata.num_rows !== BigInt(found.rows)) throw new Error('row count')
}

function valueOf(values: LobFooterParts['values'], key: string): string {
  const value = values.get(key)
  if (value === undefined) throw new Error(`no footer value ${key}`)
  return value
}
