// Writes one raw segment: lines stream through gzip into a temporary file, which gets the name of its content when it is complete.
// Readers never see an incomplete segment. A segment that the lake has already is not written again.

import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TransformOptions } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Gzip, ZlibOptions } from 'node:zlib'
import { rawDateDirectory, rawSegmentName, rawSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { haveEqualBytes, syncDirectory } from '../lake/durable-file.ts'
import { temporaryPath } from '../lake/temporary-file.ts'
import type { ManifestSegment } from './date-manifest.ts'
import { headerText } from './segment-lines.ts'
import type { SegmentHeader } from './segment-lines.ts'
import { DamagedSegmentError, verifySegment } from './segment-reader.ts'

// Level 6 takes twice the time for 6 % (recorded messages) to 13 % (generated ones) fewer bytes.
const GZIP_LEVEL = 3
/** Bytes of lines that go to gzip at once. */
const BLOCK_BYTES = 256 * 1024
/** UTF-8 bytes of one UTF-16 unit at most. */
const UNIT_BYTES_MAX = 3
const NEWLINE = 10
const NO_BYTES = Buffer.alloc(0)
/** Bytes of one piece that gzip hands to the file. */
const GZIPPED_PIECE_BYTES = 128 * 1024
/** Bytes waiting for gzip from which the writer is full. */
const WAITING_BYTES_HIGH = 1024 * 1024
const GZIP_OPTIONS: ZlibOptions & TransformOptions = {
  level: GZIP_LEVEL,
  chunkSize: GZIPPED_PIECE_BYTES,
  highWaterMark: WAITING_BYTES_HIGH,
}
/** Hexadecimal digits of the digest in a name. */
const DIGEST_DIGITS = 32

/** Facts about a written segment. */
export interface SegmentFacts extends ManifestSegment {
  readonly source: LobSource
  readonly date: string
  readonly path: string
}

/** Where a segment belongs. */
export interface SegmentPlace {
  readonly date: string
  /** The UTC hour, 0 to 23. */
  readonly hour: number
  /** `import`, or the recorder's name. */
  readonly recorder: string
}

/**
 * Streams lines into a temporary file. System errors come out of `drained`, `stage` and `finish`; after one, only
 * `discard` may be called.
 */
export class SegmentWriter {
  readonly #lake: string
  readonly #source: LobSource
  readonly #temporary: string
  readonly #gzip: Gzip
  readonly #hash = createHash('sha256')
  /** Ends when the file is synced and closed. */
  readonly #written: Promise<void>
  #error: unknown
  /** Lines in UTF-8 that wait for gzip. As strings, they would keep the input that they are slices of in memory. */
  #block = NO_BYTES
  #blockBytes = 0
  #lines = 0
  #firstTs: bigint | undefined
  #lastTs: bigint | undefined
  #isOver = false

  private constructor(lake: string, header: SegmentHeader, temporary: string) {
    this.#lake = lake
    this.#source = header.source
    this.#temporary = temporary
    this.#encode(headerText(header))
    this.#gzip = createGzip(GZIP_OPTIONS)
    this.#written = pipeline(this.#gzip, createWriteStream(temporary, { flags: 'wx', flush: true }))
    this.#written.catch((error: unknown) => (this.#error = error))
  }

  /** Starts a segment below `lake`. Makes the directories that are missing. */
  static async open(lake: string, header: SegmentHeader): Promise<SegmentWriter> {
    const directory = rawSourceDirectory(lake, header.source)
    await mkdir(directory, { recursive: true })
    return new SegmentWriter(lake, header, temporaryPath(join(directory, 'segment')))
  }

  /** Writes a segment with the lines that `fill` adds, and publishes it. */
  static async write(
    lake: string,
    header: SegmentHeader,
    place: SegmentPlace,
    fill: (writer: SegmentWriter) => Promise<void>,
  ): Promise<SegmentFacts> {
    const writer = await SegmentWriter.open(lake, header)
    try {
      await fill(writer)
      return await writer.finish(place)
    } finally {
      await writer.discard()
    }
  }

  /** Lines added so far, without the header. */
  get lines(): number {
    return this.#lines
  }

  /** Backpressure: if true, await `drained` before adding more. */
  get isFull(): boolean {
    return this.#gzip.writableNeedDrain
  }

  /** Adds one line: a text of segment-lines.ts, without its newline, and its receive time in ns. */
  add(text: string, recvTs: bigint | undefined): void {
    this.#encode(text)
    this.#lines++
    if (recvTs !== undefined) {
      if (this.#firstTs === undefined || this.#lastTs === undefined) this.#firstTs = this.#lastTs = recvTs
      else if (recvTs > this.#lastTs) this.#lastTs = recvTs
      else if (recvTs < this.#firstTs) this.#firstTs = recvTs
    }
  }

  /** Waits until gzip takes more. Throws the system's error if the file cannot be written. */
  async drained(): Promise<void> {
    if (this.#error === undefined && this.#gzip.writableNeedDrain) {
      // The pipeline's error is more specific than the one with which gzip was destroyed.
      await once(this.#gzip, 'drain').catch(() => this.#written)
    }
    if (this.#error !== undefined) throw this.#error
  }

  /** Completes and syncs the file under its temporary name. */
  async stage(place: SegmentPlace): Promise<StagedSegment> {
    this.#flush()
    this.#gzip.end()
    await this.#written
    this.#isOver = true
    const digest = this.#hash.digest('hex').slice(0, DIGEST_DIGITS)
    const { date, hour, recorder } = place
    const name = rawSegmentName({ recorder, hour, digest })
    const path = join(rawDateDirectory(this.#lake, this.#source, date), name)
    const facts: SegmentFacts = {
      source: this.#source,
      date,
      name,
      path,
      lines: this.#lines,
      firstTs: this.#firstTs,
      lastTs: this.#lastTs,
    }
    return stagedSegment(facts, this.#temporary, await isInTheLake(this.#temporary, path))
  }

  /** Completes the segment and publishes it; one that the lake has already stays as it is. */
  async finish(place: SegmentPlace): Promise<SegmentFacts> {
    const staged = await this.stage(place)
    await staged.publish().finally(() => staged.discard())
    return staged.facts
  }

  /** Ends the writing and removes the temporary file. Does nothing after `stage` or `finish`. */
  async discard(): Promise<void> {
    if (this.#isOver) return
    this.#isOver = true
    this.#gzip.destroy()
    await this.#written.catch(() => undefined)
    await rm(this.#temporary, { force: true })
  }

  #encode(text: string): void {
    const bytesMax = UNIT_BYTES_MAX * text.length + 1
    if (this.#blockBytes + bytesMax > this.#block.length) {
      this.#flush()
      this.#block = Buffer.allocUnsafe(Math.max(BLOCK_BYTES, bytesMax))
    }
    this.#blockBytes += this.#block.write(text, this.#blockBytes)
    this.#block[this.#blockBytes++] = NEWLINE
  }

  #flush(): void {
    const bytes = this.#block.subarray(0, this.#blockBytes)
    this.#block = NO_BYTES
    this.#blockBytes = 0
    // After a failure, drop the block: `drained` and `stage` throw the error.
    if (bytes.length === 0 || this.#error !== undefined || this.#gzip.destroyed) return
    this.#hash.update(bytes)
    this.#gzip.write(bytes)
  }
}

/** A segment that is complete and synced under a temporary name. */
export type StagedSegment = ReturnType<typeof stagedSegment>

/** @param isPresent the lake has it already: `publish` only removes the temporary file */
function stagedSegment(facts: SegmentFacts, temporary: string, isPresent: boolean) {
  /** Removes the temporary file. Does nothing after `publish`. */
  const discard = (): Promise<void> => rm(temporary, { force: true })
  /** Gives the file its name. */
  const publish = async (): Promise<void> => {
    if (isPresent) return await discard()
    const directory = dirname(facts.path)
    const made = await mkdir(directory, { recursive: true })
    await rename(temporary, facts.path)
    await syncDirectory(directory)
    if (made !== undefined) await syncDirectory(dirname(directory))
  }
  return { facts, isPresent, publish, discard }
}

/** Whether `path` holds the segment of `temporary`. A damaged file under that name is replaced. */
async function isInTheLake(temporary: string, path: string): Promise<boolean> {
  const isFile = await stat(path).then(
    (stats) => stats.isFile(),
    () => false,
  )
  if (!isFile) return false
  if (await haveEqualBytes(temporary, path)) return true
  // Another build of zlib may have compressed the same lines differently.
  try {
    await verifySegment(path)
    return true
  } catch (error) {
    if (error instanceof DamagedSegmentError) return false
    throw error
  }
}
