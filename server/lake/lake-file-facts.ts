// The facts in a lake file's footer, read from the file's last bytes, locally or in object storage: how far an order-book file
// covers its date, how many rows there are, whether they are sample data.

import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { parquetMetadata } from 'hyparquet'
import { FOOTER_BYTES_MAX } from '../../shared/limits.ts'
import { footerTexts } from '../../shared/lob-file/footer-texts.ts'
import { LOB_FOOTER_KEYS as KEYS } from '../../shared/lob-v1.ts'

const TRAILER_BYTES = 8
/** Most footers are shorter than this, so that one read is enough. */
const TAIL_BYTES = 64 * 1024
const MAGIC = 'PAR1'
/** Keys of order-book files, and that of the version of a file of records. */
const STATED = [
  KEYS.rows,
  KEYS.minTs,
  KEYS.maxTs,
  KEYS.coversFrom,
  KEYS.coversTo,
  KEYS.gaps,
  KEYS.markets,
  KEYS.sample,
  KEYS.strands,
  'revision',
] as const
type FooterValues = Readonly<Partial<Record<(typeof STATED)[number], string>>>
/** Without O_NONBLOCK, opening a pipe would wait for its writer. */
export const READ_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK

export interface LakeFileFacts {
  readonly rows: bigint
  /** The first and last time, ns since the epoch; null if the file does not state it. */
  readonly minTs: bigint | null
  readonly maxTs: bigint | null
  /** Record files only: the file's revision; 0 if it states none. */
  readonly revision: bigint
  /** Invented data, which must not be served as recorded. */
  readonly isSample: boolean
  /** Order-book files only: written by version 0.1, which kept no raw segments. */
  readonly isOld: boolean
  /** Order-book files only: ns, both inclusive. Null for other files, and for foreign ones without it. */
  readonly coverage: BookCoverage | null
}

export interface BookCoverage {
  readonly fromTs: bigint
  readonly toTs: bigint
  readonly gaps: bigint
  /** Rows by market id. */
  readonly markets: ReadonlyMap<string, number>
}

/** Bytes of the file from `offset` to its end. */
export type ReadTail = (offset: number) => Promise<Buffer>

/** Undefined if the file is not parquet or its footer cannot be read. Rejects only when `readTail` does. */
export async function readLakeFileFacts(
  sizeBytes: number,
  readTail: ReadTail,
): Promise<LakeFileFacts | undefined> {
  if (sizeBytes < 2 * TRAILER_BYTES) return undefined
  let tail = await readTail(Math.max(0, sizeBytes - TAIL_BYTES))
  if (tail.length < TRAILER_BYTES || tail.toString('latin1', tail.length - 4) !== MAGIC) return undefined
  const wanted = tail.readUInt32LE(tail.length - TRAILER_BYTES) + TRAILER_BYTES
  if (wanted > Math.min(sizeBytes, FOOTER_BYTES_MAX)) return undefined
  if (wanted > tail.length) tail = await readTail(sizeBytes - wanted)
  try {
    const { rows, values } = statedIn(tail.subarray(tail.length - wanted))
    return {
      rows,
      minTs: timeIn(values.min_ts),
      maxTs: timeIn(values.max_ts),
      revision: BigInt(values.revision ?? 0),
      isSample: values.sample === 'true',
      isOld: values.strands !== undefined,
      coverage: coverageOf(values),
    }
  } catch {
    return undefined
  }
}

/** Rows and key-value pairs of a footer with its trailer. Only one without a checksum has to be decoded. */
function statedIn(footer: Buffer): { readonly rows: bigint; readonly values: FooterValues } {
  const values = footerTexts(footer.subarray(0, footer.length - TRAILER_BYTES), STATED)
  if (values?.rows !== undefined) return { rows: BigInt(values.rows), values }
  const bytes = Uint8Array.from(footer).buffer
  const { num_rows: rows, key_value_metadata: pairs = [] } = parquetMetadata(bytes, { geoparquet: false })
  return { rows, values: Object.fromEntries(pairs.map(({ key, value }) => [key, value ?? ''])) }
}

/** The facts of a file in a directory. Rejects when it cannot be opened or read. */
export async function lakeFileFacts(path: string): Promise<LakeFileFacts | undefined> {
  const file = await open(path, READ_FLAGS)
  try {
    return await openFileFacts(file, (await file.stat()).size)
  } finally {
    await file.close()
  }
}

/** The facts of the first `sizeBytes` bytes of an open file. */
export async function openFileFacts(file: FileHandle, sizeBytes: number): Promise<LakeFileFacts | undefined> {
  return await readLakeFileFacts(sizeBytes, async (offset) => {
    const bytes = Buffer.alloc(sizeBytes - offset)
    const { bytesRead } = await file.read(bytes, 0, bytes.length, offset)
    return bytes.subarray(0, bytesRead)
  })
}

function timeIn(text: string | undefined): bigint | null {
  return text === undefined || text === '' ? null : BigInt(text)
}

function coverageOf(values: FooterValues): BookCoverage | null {
  const { covers_from: from, covers_to: to, markets, gaps } = values
  if (from === undefined || to === undefined || markets === undefined) return null
  const list = JSON.parse(markets) as readonly { readonly id: string; readonly rows: number }[]
  return {
    fromTs: BigInt(from),
    toTs: BigInt(to),
    gaps: BigInt(gaps ?? 0),
    markets: new Map(list.map(({ id, rows }) => [id, rows])),
  }
}

/** Why `next` covers less than `present`, as a text for users; undefined if it does not. */
export function coversLess(next: LakeFileFacts, present: LakeFileFacts): string | undefined {
  const [a, b] = [next.coverage, present.coverage]
  if (b !== null) {
    if (a === null) return 'it does not say what it covers'
    if (a.fromTs > b.fromTs) return `it begins at ${timeOf(a.fromTs)}, not ${timeOf(b.fromTs)}`
    if (a.toTs < b.toTs) return `it ends at ${timeOf(a.toTs)}, not ${timeOf(b.toTs)}`
    const missing = [...b.markets.keys()].find((id) => !a.markets.has(id))
    if (missing !== undefined) return `it lacks the market ${missing}`
  }
  return next.rows < present.rows ? `it has ${next.rows} rows, not ${present.rows}` : undefined
}

function timeOf(ts: bigint): string {
  return new Date(Number(ts / 1_000_000n)).toISOString()
}
