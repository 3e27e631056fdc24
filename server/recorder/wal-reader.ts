// Reads a write-ahead log from a position on, in bounded batches, up to a limit that is known to be on disk. A damaged or
// missing stretch becomes one `lost` record, and reading continues with the next segment: the end of damaged data is unknown.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { WAL_READ_BYTES } from '../../shared/limits.ts'
import { WAL_KIND, WAL_LENGTH_BYTES_MIN, getWalRecord, walRecordBytes } from './wal-record.ts'
import type { WalRecord } from './wal-record.ts'
import { WAL_MAGIC, endOfLog, listWalSegments } from './wal-segment.ts'
import type { WalPosition } from './wal-segment.ts'

/** Consecutive records of one file of the log. Payloads are only valid until the next batch is requested. */
export interface WalBatch {
  readonly segment: number
  readonly records: readonly WalRecord[]
}

export class WalReader {
  readonly #directory: string
  #segment: number
  #offset: number
  #file: FileHandle | undefined
  #buffer = Buffer.allocUnsafe(WAL_READ_BYTES)

  /** `from` must lie between two records. */
  constructor(directory: string, from: WalPosition) {
    this.#directory = directory
    this.#segment = from.segment
    this.#offset = from.offset
  }

  /** Everything before it has been read. */
  get position(): WalPosition {
    return { segment: this.#segment, offset: this.#offset }
  }

  /**
   * The next records before `limit`, which must be the end of a record; `undefined` when there are none. Segments before
   * the limit's are read to their end.
   * @throws if the directory lacks the limit's segment, for instance while its disk is not mounted
   */
  async next(limit: WalPosition): Promise<WalBatch | undefined> {
    for (;;) {
      if (this.#segment > limit.segment) return undefined
      const isLast = this.#segment === limit.segment
      if (isLast && this.#offset >= limit.offset) return undefined
      const file = this.#file ?? (await this.#open())
      if (file === undefined) return await this.#skip(limit)
      const sizeBytes = (await file.stat()).size
      const endOffset = isLast ? Math.min(limit.offset, sizeBytes) : sizeBytes
      if (this.#offset >= endOffset) {
        if (isLast) return undefined
        await this.#enter(this.#segment + 1)
        continue
      }
      return await this.#read(file, endOffset)
    }
  }

  async close(): Promise<void> {
    await this.#file?.close()
    this.#file = undefined
  }

  async #read(file: FileHandle, endOffset: number): Promise<WalBatch> {
    const segment = this.#segment
    const bytes = await this.#fill(file, endOffset)
    const records: WalRecord[] = []
    let at = 0
    while (bytes.length - at >= WAL_LENGTH_BYTES_MIN) {
      const recordBytes = walRecordBytes(bytes, at)
      if (recordBytes === undefined || this.#offset + recordBytes > endOffset) {
        return await this.#damaged(segment, records)
      }
      if (bytes.length - at < recordBytes) break
      const record = getWalRecord(bytes, at, recordBytes, this.#offset)
      if (record === undefined) return await this.#damaged(segment, records)
      records.push(record)
      at += recordBytes
      this.#offset += recordBytes
    }
    if (records.length === 0) return await this.#damaged(segment, records)
    return { segment, records }
  }

  /** A full buffer of bytes, or one whole record if it is larger, or the rest. */
  async #fill(file: FileHandle, endOffset: number): Promise<Buffer> {
    if (this.#buffer.length > WAL_READ_BYTES) this.#buffer = Buffer.allocUnsafe(WAL_READ_BYTES)
    let length = await this.#readInto(file, 0, Math.min(this.#buffer.length, endOffset - this.#offset))
    if (length < WAL_LENGTH_BYTES_MIN) return this.#buffer.subarray(0, length)
    const recordBytes = walRecordBytes(this.#buffer, 0)
    if (recordBytes !== undefined && recordBytes > length && this.#offset + recordBytes <= endOffset) {
      const larger = Buffer.allocUnsafe(recordBytes)
      this.#buffer.copy(larger, 0, 0, length)
      this.#buffer = larger
      length += await this.#readInto(file, length, recordBytes - length)
    }
    return this.#buffer.subarray(0, length)
  }

  async #readInto(file: FileHandle, at: number, count: number): Promise<number> {
    let done = 0
    while (done < count) {
      const { bytesRead } = await file.read(this.#buffer, at + done, count - done, this.#offset + at + done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return done
  }

  // Return the records before the damage first, then the `lost` record.
  async #damaged(segment: number, records: readonly WalRecord[]): Promise<WalBatch> {
    const lost = lostRecord(this.#offset)
    await this.#enter(this.#segment + 1)
    return { segment, records: [...records, lost] }
  }

  // If the directory lacks a segment that is known to be on disk, its disk is not mounted: nothing is known to be lost.
  async #skip(limit: WalPosition): Promise<WalBatch> {
    const missing = this.#segment
    const segments = await listWalSegments(this.#directory)
    if (limit.offset > 0 && !segments.some(({ number }) => number === limit.segment))
      throw new Error(
        `Cannot read segment ${limit.segment} of the log: ${this.#directory} lacks it. Is its disk mounted?`,
      )
    await this.#enter(segments.find(({ number }) => number > missing)?.number ?? limit.segment)
    return { segment: missing, records: [lostRecord(0)] }
  }

  async #open(): Promise<FileHandle | undefined> {
    const segments = await listWalSegments(this.#directory)
    const segment = segments.find(({ number }) => number === this.#segment)
    if (segment === undefined) return undefined
    this.#file = await open(segment.path)
    if (this.#offset === 0) {
      const magic = Buffer.alloc(WAL_MAGIC.length)
      await this.#file.read(magic, 0, magic.length, 0)
      // A wrong magic is damage like any other: the first record will not be found.
      this.#offset = magic.equals(WAL_MAGIC) ? WAL_MAGIC.length : 0
    }
    return this.#file
  }

  async #enter(segment: number): Promise<void> {
    await this.close()
    this.#segment = segment
    this.#offset = 0
  }
}

function lostRecord(offset: number): WalRecord {
  return {
    kind: WAL_KIND.lost,
    lane: 0,
    begunMs: 0,
    recvTs: 0n,
    start: 0,
    n: 0,
    payload: Buffer.alloc(0),
    offset,
  }
}

/** The start of the process that wrote the last segment; 0 if there is none. */
export async function lastStart(directory: string): Promise<number> {
  const end = await endOfLog(await listWalSegments(directory))
  if (end === undefined) return 0
  const reader = new WalReader(directory, { segment: end.segment, offset: 0 })
  try {
    return (await reader.next(end))?.records[0]?.start ?? 0
  } finally {
    await reader.close()
  }
}
