// The recorder's write-ahead log. Records are gathered in memory for at most a commit interval, written in one piece and
// synced (fdatasync). Only then are they reported as synced. So a process that is killed at any moment loses nothing that was
// reported. The last record may be torn, which readers detect by the checksum. Every start begins a new segment, so nothing is
// ever written after a torn record.

import { open } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import {
  WAL_COMMIT_BYTES,
  WAL_COMMIT_INTERVAL_MS,
  WAL_QUEUE_BYTES_HIGH,
  WAL_QUEUE_BYTES_LOW,
  WAL_SEGMENT_BYTES_MAX,
} from '../../shared/limits.ts'
import { messageOf } from '../../shared/error-message.ts'
import { NS_PER_HOUR } from '../../shared/utc-date.ts'
import { syncDirectory, writeFully } from '../lake/durable-file.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { WAL_HEADER_BYTES, putWalRecord } from './wal-record.ts'
import type { WalEntry } from './wal-record.ts'
import { WAL_MAGIC, listWalSegments, walSegmentName } from './wal-segment.ts'
import type { WalPosition } from './wal-segment.ts'

export interface WriteAheadLogOptions {
  readonly directory: string
  /** Everything before `position` is on disk: `records` new records, of which the oldest has waited for `delayMs`. */
  readonly onSynced: (position: WalPosition, records: number, delayMs: number) => void
  /** Backpressure: true when too many bytes wait for the disk, false when few do. */
  readonly onCongestion: (isCongested: boolean) => void
  /** Called once, when a write fails. After it, the log refuses all records. */
  readonly onFailed: (error: Error) => void
  /** Smaller bounds than shared/limits.ts, for tests. */
  readonly bounds?: {
    readonly commitIntervalMs?: number
    readonly segmentBytes?: number
    readonly queueBytesHigh?: number
  }
}

const FIRST_BATCH_BYTES = 256 * 1024

/** Records that wait for the disk. */
class Batch {
  bytes = Buffer.allocUnsafe(FIRST_BATCH_BYTES)
  length = 0
  records = 0
  /** Receive time of the first record, and `performance.now()` when it was added. */
  firstTs = 0n
  firstMs = 0

  add(entry: WalEntry): void {
    const end = this.length + WAL_HEADER_BYTES + entry.payload.length
    if (end > this.bytes.length) this.#grow(end)
    if (this.records === 0) {
      this.firstTs = entry.recvTs
      this.firstMs = performance.now()
    }
    this.length = putWalRecord(this.bytes, this.length, entry)
    this.records++
  }

  clear(): void {
    this.length = 0
    this.records = 0
    // Release the memory of one huge frame.
    if (this.bytes.length > WAL_COMMIT_BYTES * 4) this.bytes = Buffer.allocUnsafe(FIRST_BATCH_BYTES)
  }

  #grow(sizeBytes: number): void {
    const larger = Buffer.allocUnsafe(Math.max(sizeBytes, this.bytes.length * 2))
    this.bytes.copy(larger, 0, 0, this.length)
    this.bytes = larger
  }
}

export class WriteAheadLog {
  readonly #options: WriteAheadLogOptions
  readonly #commitIntervalMs: number
  readonly #segmentBytesMax: number
  readonly #queueBytesHigh: number
  /** The segment that was begun last. Before the first write, the last one of the process before. */
  #segment: number
  #file: FileHandle | undefined
  #offset = 0
  #synced: WalPosition
  #hour = -1n
  /** Two batches take turns: one receives records while the other is being written. */
  #filling = new Batch()
  #other = new Batch()
  #committing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  #isCongested = false
  #isClosed = false
  #failure: Error | undefined

  private constructor(options: WriteAheadLogOptions, lastSegment: number) {
    this.#options = options
    this.#segment = lastSegment
    this.#synced = { segment: lastSegment + 1, offset: 0 }
    this.#commitIntervalMs = options.bounds?.commitIntervalMs ?? WAL_COMMIT_INTERVAL_MS
    this.#segmentBytesMax = options.bounds?.segmentBytes ?? WAL_SEGMENT_BYTES_MAX
    this.#queueBytesHigh = options.bounds?.queueBytesHigh ?? WAL_QUEUE_BYTES_HIGH
  }

  /** Opens the log of a directory, which is created if needed. Nothing is written before the first record. */
  static async open(options: WriteAheadLogOptions): Promise<WriteAheadLog> {
    const segments = await listWalSegments(options.directory)
    return new WriteAheadLog(options, segments.at(-1)?.number ?? 0)
  }

  /**
   * Everything before it is on disk, also while a batch is being written, and after a write has failed. Before the first commit, it
   * is the beginning of the next segment.
   */
  get position(): WalPosition {
    return this.#synced
  }

  /** Bytes of records that are not yet on disk. */
  get queuedBytes(): number {
    return this.#filling.length + this.#other.length
  }

  /** Appends a copy of a record. Throws after `close` or a failure. */
  append(entry: WalEntry): void {
    if (this.#failure !== undefined) throw this.#failure
    if (this.#isClosed) throw new Error('the write-ahead log is closed')
    this.#filling.add(entry)
    this.#reportCongestion()
    if (this.#committing !== undefined) return
    if (this.#filling.length >= WAL_COMMIT_BYTES) this.#commit()
    else this.#timer ??= setTimeout(() => this.#commit(), this.#commitIntervalMs)
  }

  /** Writes the waiting records and closes the segment. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#failure === undefined && (this.#committing !== undefined || this.#filling.records > 0)) {
      this.#commit()
      await this.#committing
    }
    clearTimeout(this.#timer)
    await this.#file?.close()
    this.#file = undefined
  }

  #commit(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#committing !== undefined || this.#filling.records === 0) return
    const batch = this.#filling
    this.#filling = this.#other
    this.#other = batch
    this.#committing = this.#write(batch).then(
      () => this.#committed(batch),
      (error: unknown) => this.#fail(error),
    )
  }

  #committed(batch: Batch): void {
    this.#committing = undefined
    this.#synced = { segment: this.#segment, offset: this.#offset }
    const { records, firstMs } = batch
    batch.clear()
    this.#options.onSynced(this.#synced, records, performance.now() - firstMs)
    this.#reportCongestion()
    const waiting = this.#filling
    if (waiting.records === 0) return
    const waitMs = this.#commitIntervalMs - (performance.now() - waiting.firstMs)
    if (waiting.length >= WAL_COMMIT_BYTES || waitMs <= 0) this.#commit()
    else this.#timer ??= setTimeout(() => this.#commit(), waitMs)
  }

  #fail(error: unknown): void {
    this.#committing = undefined
    const { directory } = this.#options
    const reason =
      describeLakeWriteError(error, directory, "the recorder's log") ??
      `the recorder's log ${directory} cannot be written: ${messageOf(error)}`
    this.#failure = new Error(reason, { cause: error })
    this.#options.onFailed(this.#failure)
  }

  async #write(batch: Batch): Promise<void> {
    const hour = batch.firstTs / NS_PER_HOUR
    const isFull = this.#offset > WAL_MAGIC.length && this.#offset + batch.length > this.#segmentBytesMax
    if (this.#file === undefined || hour !== this.#hour || isFull) await this.#nextSegment(batch.firstTs)
    this.#hour = hour
    const file = this.#file!
    await writeFully(file, batch.bytes.subarray(0, batch.length), this.#offset)
    await file.datasync()
    this.#offset += batch.length
  }

  async #nextSegment(ts: bigint): Promise<void> {
    const { directory } = this.#options
    await this.#file?.close()
    this.#file = undefined
    const file = await open(join(directory, walSegmentName(this.#segment + 1, ts)), 'wx', 0o600)
    this.#segment++
    this.#file = file
    await writeFully(file, WAL_MAGIC, 0)
    this.#offset = WAL_MAGIC.length
    await syncDirectory(directory)
  }

  // The batch that is being written counts too: it still occupies memory.
  #reportCongestion(): void {
    const queued = this.queuedBytes
    const isCongested = this.#isCongested
      ? queued > Math.min(WAL_QUEUE_BYTES_LOW, this.#queueBytesHigh / 2)
      : queued > this.#queueBytesHigh
    if (isCongested === this.#isCongested) return
    this.#isCongested = isCongested
    this.#options.onCongestion(isCongested)
  }
}
