// A kept body on disk: a header that names it, then its bytes in blocks that each carry a checksum, then an end that says
// how many bytes there are. Nothing of a block is given before it is checked; a file that breaks off has no end.
//
//   "BKBLOCK1" · length and CRC-32 of the header · header (JSON) · { length · CRC-32 · bytes }… · 0 · CRC-32 of the total

import { type FileHandle, open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'

const MAGIC = Buffer.from('BKBLOCK1', 'latin1')
/** Of a length and a checksum. */
const PREFIX_BYTES = 8
const HEADER_BYTES_MAX = 4096
/** As long as the longest chunk of a stream; longer ones become several blocks. */
export const BLOCK_BYTES_MAX = 1024 * 1024

export interface BlockFileHeader {
  /** The identity of the answer: its files, its query and the program that made it. */
  readonly identity: string
  readonly coding: 'identity' | 'zstd'
  readonly rows: number
}

/** The bytes on disk are not what was written. */
export class BlockDamaged extends Error {}

function prefixOf(length: number, checksum: number): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32LE(length, 0)
  prefix.writeUInt32LE(checksum, 4)
  return prefix
}

function totalChecksum(totalBytes: number): number {
  return crc32(String(totalBytes))
}

/** What stands before the blocks. */
export function headerBytes(header: BlockFileHeader): Buffer {
  const json = Buffer.from(JSON.stringify(header))
  return Buffer.concat([MAGIC, prefixOf(json.length, crc32(json)), json])
}

/** A chunk as blocks, copied: the chunk's memory is used again. */
export function blockBytes(chunk: Uint8Array): Buffer[] {
  const blocks: Buffer[] = []
  for (let at = 0; at < chunk.length; at += BLOCK_BYTES_MAX) {
    const part = chunk.subarray(at, at + BLOCK_BYTES_MAX)
    const block = Buffer.allocUnsafe(PREFIX_BYTES + part.length)
    block.set(part, PREFIX_BYTES)
    block.writeUInt32LE(part.length, 0)
    block.writeUInt32LE(crc32(part), 4)
    blocks.push(block)
  }
  return blocks
}

/** What stands behind the blocks. */
export function endBytes(totalBytes: number): Buffer {
  return prefixOf(0, totalChecksum(totalBytes))
}

/** Reads a kept body from its beginning. Rejects with BlockDamaged where the file is not what was written. */
export class BlockFile {
  readonly header: BlockFileHeader
  readonly sizeBytes: number
  readonly #handle: FileHandle
  readonly #startAt: number
  readonly #start: Prefix
  /** Used in turns: the bytes given last are left alone while the next block is read. */
  readonly #buffers = [new Uint8Array(0), new Uint8Array(0)]
  #turn = 0
  #at: number
  #next: Prefix
  #bodyBytes = 0
  #reading: Promise<Uint8Array | null> | undefined

  private constructor(
    handle: FileHandle,
    sizeBytes: number,
    header: BlockFileHeader,
    at: number,
    next: Prefix,
  ) {
    this.#handle = handle
    this.sizeBytes = sizeBytes
    this.header = header
    this.#startAt = at
    this.#start = next
    this.#at = at
    this.#next = next
  }

  /** Undefined where there is no such file. */
  static async open(path: string): Promise<BlockFile | undefined> {
    let handle: FileHandle
    try {
      handle = await open(path, 'r')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    try {
      const { size } = await handle.stat()
      const head = await readExactly(handle, MAGIC.length + PREFIX_BYTES, 0)
      const { length, checksum } = prefixAt(head, MAGIC.length)
      if (!MAGIC.equals(head.subarray(0, MAGIC.length)) || length > HEADER_BYTES_MAX)
        throw new BlockDamaged('it has no header')
      const rest = await readExactly(handle, length + PREFIX_BYTES, head.length)
      const json = rest.subarray(0, length)
      if (crc32(json) !== checksum) throw new BlockDamaged('its header has a wrong checksum')
      const header = JSON.parse(json.toString()) as BlockFileHeader
      return new BlockFile(handle, size, header, head.length + rest.length, prefixAt(rest, length))
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** The next bytes, valid until the next call; null behind the last. */
  async next(): Promise<Uint8Array | null> {
    const block = await (this.#reading ?? this.#read())
    this.#reading = undefined
    if (block !== null) {
      this.#reading = this.#read()
      // Who awaits it hears of it.
      this.#reading.catch(() => {})
    }
    return block
  }

  /** Reads all of it, and begins anew. */
  async verify(): Promise<void> {
    while ((await this.#read()) !== null);
    this.#at = this.#startAt
    this.#next = this.#start
    this.#bodyBytes = 0
  }

  async close(): Promise<void> {
    await this.#reading?.catch(() => {})
    await this.#handle.close()
  }

  async #read(): Promise<Uint8Array | null> {
    const { length, checksum } = this.#next
    if (length === 0) {
      if (checksum !== totalChecksum(this.#bodyBytes) || this.#at !== this.sizeBytes)
        throw new BlockDamaged('its end is not that of its bytes')
      return null
    }
    if (length > BLOCK_BYTES_MAX) throw new BlockDamaged('a block is too long')
    this.#turn = 1 - this.#turn
    const wanted = length + PREFIX_BYTES
    if (this.#buffers[this.#turn]!.length < wanted)
      this.#buffers[this.#turn] = new Uint8Array(BLOCK_BYTES_MAX + PREFIX_BYTES)
    const buffer = this.#buffers[this.#turn]!.subarray(0, wanted)
    await readInto(this.#handle, buffer, this.#at)
    const block = buffer.subarray(0, length)
    if (crc32(block) !== checksum) throw new BlockDamaged('a block has a wrong checksum')
    this.#at += wanted
    this.#bodyBytes += length
    this.#next = prefixAt(buffer, length)
    return block
  }
}

interface Prefix {
  readonly length: number
  readonly checksum: number
}

function prefixAt(bytes: Uint8Array, at: number): Prefix {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, PREFIX_BYTES)
  return { length: view.getUint32(0, true), checksum: view.getUint32(4, true) }
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
