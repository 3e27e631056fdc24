// A kept body on disk: a header that names it, then its bytes, then the checksums of every span of them. Nothing of a
// span is given before it is checked; a file that breaks off has no end.
//
// Checksums cost as much as all else that a second reading does, so a file that was checked to its end is taken for what
// it was while it is the same one of the same times, which is asked anew for every span.
//
//   "BKBLOCK2" · length and CRC-32 of the header · header (JSON) · bytes · CRC-32 of each span · CRC-32 of these and the
//   number of bytes

import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { noneThere } from '../../shared/errno.ts'
import { identityOf } from '../../shared/file-identity.ts'
import { DiskSilent, type KeptDisk } from './kept-disk.ts'

const MAGIC = Buffer.from('BKBLOCK2', 'latin1')
const CHECKSUM_BYTES = 4
/** Of the header's length and its checksum. */
const PREFIX_BYTES = 8
const HEADER_BYTES_MAX = 4096
/** Opening a pipe does not wait for who writes into it. */
const READ_FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)
/**
 * Bytes that are read, checked and given at once. Every reading is two errands of another thread, which cost the event
 * loop as much as some 100 KiB sent; a turn of it takes about half a millisecond.
 */
export const SPAN_BYTES = 2 * 1024 * 1024
/** A span that takes longer is not waited for: who reads is given the answer another way. */
const SPAN_MS_MAX = 5_000
/** Times of files are as coarse as this at worst: a change soon after another one may not show in them. */
const TIME_STEP_MS = 2_000

export interface BlockFileHeader {
  /** The identity of the answer: its files, its query and the program that made it. */
  readonly identity: string
  readonly coding: 'identity' | 'zstd'
  readonly rows: number
}

/** The bytes on disk are not what was written. */
export class BlockDamaged extends Error {}

/** What stands before the bytes. */
export function headerBytes(header: BlockFileHeader): Buffer {
  const json = Buffer.from(JSON.stringify(header))
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32LE(json.length, 0)
  prefix.writeUInt32LE(crc32(json), CHECKSUM_BYTES)
  return Buffer.concat([MAGIC, prefix, json])
}

/** The checksums of a body that comes in chunks of any size. */
export class SpanChecksums {
  readonly #whole: number[] = []
  #bodyBytes = 0
  /** Of the span begun last. */
  #checksum = 0

  add(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) {
      const part = chunk.subarray(at, at + SPAN_BYTES - (this.#bodyBytes % SPAN_BYTES))
      this.#checksum = crc32(part, this.#checksum)
      this.#bodyBytes += part.length
      at += part.length
      if (this.#bodyBytes % SPAN_BYTES === 0) this.#endSpan()
    }
  }

  /** What stands behind the bytes. */
  endBytes(): Buffer {
    if (this.#bodyBytes % SPAN_BYTES > 0) this.#endSpan()
    const end = Buffer.alloc((this.#whole.length + 1) * CHECKSUM_BYTES)
    for (const [index, checksum] of this.#whole.entries()) end.writeUInt32LE(checksum, index * CHECKSUM_BYTES)
    end.writeUInt32LE(endChecksum(end, this.#bodyBytes), end.length - CHECKSUM_BYTES)
    return end
  }

  #endSpan(): void {
    this.#whole.push(this.#checksum)
    this.#checksum = 0
  }
}

function endChecksum(end: Buffer, bodyBytes: number): number {
  return crc32(String(bodyBytes), crc32(end.subarray(0, -CHECKSUM_BYTES)))
}

/** Which files were found as they were written, all of them. */
export interface CheckedFiles {
  has(identity: string): boolean
  add(identity: string): void
}

interface OpenedFile {
  readonly handle: FileHandle
  readonly header: BlockFileHeader
  readonly usedMs: number
  /** Changes with every write. */
  readonly identity: string
  /** A write from now on shows in the identity. */
  readonly isSettled: boolean
  /** Where the body begins. */
  readonly startAt: number
  readonly bodyBytes: number
  /** Of its spans. */
  readonly checksums: Buffer
}

/** Reads a kept body from its beginning. Rejects with BlockDamaged where the file is not what was written. */
export class BlockFile {
  readonly #disk: KeptDisk
  readonly #file: OpenedFile
  readonly #checked: CheckedFiles
  /** Its bytes need no check while its identity stays. */
  #isTrusted: boolean
  /** Every span so far had its checksum. */
  #isAllChecked = true
  /** Used in turns: the bytes given last are left alone while the next ones are read. */
  readonly #buffers = [new Uint8Array(0), new Uint8Array(0)]
  #turn = 0
  #span = 0
  #reading: Promise<Uint8Array | null> | undefined

  private constructor(disk: KeptDisk, file: OpenedFile, checked: CheckedFiles) {
    this.#disk = disk
    this.#file = file
    this.#checked = checked
    this.#isTrusted = checked.has(file.identity)
  }

  /** Undefined where there is no such file. */
  static async open(disk: KeptDisk, path: string, checked: CheckedFiles): Promise<BlockFile | undefined> {
    const handle = await disk.ask(() => open(path, READ_FLAGS)).catch(noneThere)
    if (handle === undefined) return undefined
    try {
      return new BlockFile(disk, await disk.ask(() => readHead(handle)), checked)
    } catch (error) {
      await disk.ask(() => handle.close())
      throw error
    }
  }

  get header(): BlockFileHeader {
    return this.#file.header
  }

  /** Of all that `next` gives. */
  get bodyBytes(): number {
    return this.#file.bodyBytes
  }

  /** When it was last said to be in use. */
  get usedMs(): number {
    return this.#file.usedMs
  }

  /** The next bytes, valid until the next call; null behind the last. */
  async next(): Promise<Uint8Array | null> {
    const block = await this.#awaitRead()
    if (block !== null) {
      this.#reading = this.#read()
      // Who awaits it hears of it.
      this.#reading.catch(() => {})
    }
    return block
  }

  /** Reads all of it, unless it is known, and begins anew. */
  async verify(): Promise<void> {
    if (this.#isTrusted) return
    while ((await this.#awaitRead()) !== null);
    this.#span = 0
  }

  /** Waits for what is being read, which a silent disk may make long. */
  async close(): Promise<void> {
    await this.#reading?.catch(() => {})
    await this.#disk.ask(() => this.#file.handle.close())
  }

  /** What is being read, or else read now. Rejects with DiskSilent where that takes too long. */
  async #awaitRead(): Promise<Uint8Array | null> {
    const reading = (this.#reading ??= this.#read())
    if (!(await this.#disk.answers(reading, SPAN_MS_MAX))) throw new DiskSilent('its disk does not answer')
    this.#reading = undefined
    return reading
  }

  async #read(): Promise<Uint8Array | null> {
    const { handle, bodyBytes, startAt, checksums } = this.#file
    const at = this.#span * SPAN_BYTES
    if (at >= bodyBytes) {
      if (this.#isAllChecked && (await this.#isUntouched())) this.#trust()
      return null
    }
    this.#turn = 1 - this.#turn
    if (this.#buffers[this.#turn]!.length === 0)
      this.#buffers[this.#turn] = new Uint8Array(Math.min(SPAN_BYTES, bodyBytes))
    const bytes = this.#buffers[this.#turn]!.subarray(0, bodyBytes - at)
    await this.#disk.ask(() => readInto(handle, bytes, startAt + at))
    // Asked behind the reading: what was written before it shows.
    this.#isTrusted &&= await this.#isUntouched()
    if (this.#isTrusted) this.#isAllChecked = false
    else if (crc32(bytes) !== checksums.readUInt32LE(this.#span * CHECKSUM_BYTES))
      throw new BlockDamaged('a span has a wrong checksum')
    this.#span++
    return bytes
  }

  async #isUntouched(): Promise<boolean> {
    const { handle, identity } = this.#file
    return identityOf(await this.#disk.ask(() => handle.stat({ bigint: true }))) === identity
  }

  #trust(): void {
    if (!this.#file.isSettled) return
    this.#isTrusted = true
    this.#checked.add(this.#file.identity)
  }
}

async function readHead(handle: FileHandle): Promise<OpenedFile> {
  const found = await handle.stat({ bigint: true })
  if (!found.isFile()) throw new BlockDamaged('it is not a file')
  const isSettled = Date.now() - Number(found.ctimeMs) > TIME_STEP_MS
  const sizeBytes = Number(found.size)
  const head = await readExactly(
    handle,
    Math.min(MAGIC.length + PREFIX_BYTES + HEADER_BYTES_MAX, sizeBytes),
    0,
  )
  const jsonAt = MAGIC.length + PREFIX_BYTES
  if (sizeBytes < jsonAt || !MAGIC.equals(head.subarray(0, MAGIC.length)))
    throw new BlockDamaged('it has no header')
  const startAt = jsonAt + head.readUInt32LE(MAGIC.length)
  const json = head.subarray(jsonAt, startAt)
  if (crc32(json) !== head.readUInt32LE(MAGIC.length + CHECKSUM_BYTES))
    throw new BlockDamaged('its header has a wrong checksum')
  const restBytes = sizeBytes - startAt - CHECKSUM_BYTES
  const spans = Math.ceil(restBytes / (SPAN_BYTES + CHECKSUM_BYTES))
  const bodyBytes = restBytes - spans * CHECKSUM_BYTES
  if (bodyBytes < 0) throw new BlockDamaged('it breaks off')
  const checksums = await readExactly(handle, (spans + 1) * CHECKSUM_BYTES, startAt + bodyBytes)
  if (endChecksum(checksums, bodyBytes) !== checksums.readUInt32LE(spans * CHECKSUM_BYTES))
    throw new BlockDamaged('its end is not that of its bytes')
  return {
    handle,
    header: JSON.parse(json.toString()) as BlockFileHeader,
    usedMs: Number(found.mtimeMs),
    identity: identityOf(found),
    isSettled,
    startAt,
    bodyBytes,
    checksums,
  }
}

async function readExactly(handle: FileHandle, length: number, position: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  await readInto(handle, bytes, position)
  return bytes
}

async function readInto(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await handle.read(bytes, done, bytes.length - done, position + done)
    if (bytesRead === 0) throw new BlockDamaged('it breaks off')
    done += bytesRead
  }
}
