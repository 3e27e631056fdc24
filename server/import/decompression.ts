// Decompresses recordings. The first bytes show the compression; the file's name does not matter. gzip and zstd are read (several
// members or frames in one input are one recording). For other formats the error names the command that opens them: they have no
// well-maintained streaming decoder with bounded memory.

import { Readable, pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { ZstdError, decodeZstd } from './zstd-decoder.ts'

// Like those of plain files (import-input.ts).
const UNZIPPED_PIECE_BYTES = 120 * 1024
// Magic numbers as hexadecimal digits.
const GZIP = /^1f8b/
// A frame, or a frame to be skipped (`pzstd` and seekable files have them) before the first one.
const ZSTD = /^(?:28b52ffd|5[0-9a-f]2a4d18)/
const NOT_READ: readonly { readonly magic: RegExp; readonly name: string; readonly command: string }[] = [
  { magic: /^425a683[1-9]/, name: 'bzip2', command: 'bzip2 -dc FILE' },
  { magic: /^fd377a585a/, name: 'xz', command: 'xz -dc FILE' },
  { magic: /^504b(?:0304|0506|0708)/, name: 'zip', command: 'unzip -p FILE' },
  { magic: /^377abcaf/, name: '7z', command: '7z x -so FILE' },
  { magic: /^04224d18/, name: 'lz4', command: 'lz4 -dc FILE' },
]
const MAGIC_BYTES_MAX = 5

/** Compressed data that is damaged or cut; the message is for the user. */
export class DamagedDataError extends Error {
  constructor(format: string, cause: Error) {
    super(`the ${format} data is damaged or ends too early (${cause.message})`, { cause })
    this.name = 'DamagedDataError'
  }
}

/**
 * The decompressed bytes of `pieces`; gzip comes in pieces of at most 120 KiB. Throws DamagedDataError, an error for
 * the user if the compression is not supported, and the errors of `pieces`.
 */
export async function* decompressed(pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    const head = await firstBytes(pieces, MAGIC_BYTES_MAX)
    yield* inFormat(head.subarray(0, MAGIC_BYTES_MAX).toString('hex'), startingWith(head, pieces))
  } finally {
    // Not awaited: a source that waits for more input would end only after it.
    pieces.return(undefined).catch(() => undefined)
  }
}

function inFormat(magic: string, pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (GZIP.test(magic)) return gunzipped(pieces)
  if (ZSTD.test(magic)) return unzstded(pieces)
  const refused = NOT_READ.find((format) => format.magic.test(magic))
  if (refused === undefined) return pieces
  throw new Error(
    `${refused.name} is not read; plain text, gzip and zstd are: ${refused.command} | bookcast import … -`,
  )
}

async function* gunzipped(pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: UNZIPPED_PIECE_BYTES })
  const unread = new UnreadTail(pieces, () => gunzip.bytesWritten)
  // The callback has nothing to do: a failure on either side destroys gunzip and comes out of its iteration.
  pipeline(Readable.from(unread.pieces()), gunzip, () => undefined)
  try {
    yield* gunzip
    // zlib stops without a word at a zero after a member.
    if (await unread.hasContent()) throw new DamagedDataError('gzip', new Error('something else follows it'))
  } catch (error) {
    throw isZlibError(error) ? new DamagedDataError('gzip', error) : error
  }
}

/** Passes pieces on and keeps those that their reader has not used up. */
class UnreadTail {
  readonly #source: AsyncGenerator<Buffer>
  readonly #usedBytes: () => number
  #kept: Buffer[] = []
  /** Where the first kept piece begins. */
  #keptFrom = 0

  constructor(source: AsyncGenerator<Buffer>, usedBytes: () => number) {
    this.#source = source
    this.#usedBytes = usedBytes
  }

  async *pieces(): AsyncGenerator<Buffer> {
    for (;;) {
      // Not `for await`: the source must outlive a reader that stops early.
      const { value, done } = await this.#source.next()
      if (done === true) return
      this.#dropUsed()
      this.#kept.push(value)
      yield value
    }
  }

  /** Whether anything but zeros, which tapes and preallocated files end with, was left unread. Reads the source up. */
  async hasContent(): Promise<boolean> {
    this.#dropUsed()
    const used = this.#usedBytes() - this.#keptFrom
    const first = this.#kept[0]
    if (first !== undefined) this.#kept[0] = first.subarray(used)
    if (!this.#kept.every(isZero)) return true
    for await (const piece of this.#source) if (!isZero(piece)) return true
    return false
  }

  #dropUsed(): void {
    const used = this.#usedBytes()
    for (;;) {
      const first = this.#kept[0]
      if (first === undefined || this.#keptFrom + first.length > used) return
      this.#kept.shift()
      this.#keptFrom += first.length
    }
  }
}

function isZero(bytes: Buffer): boolean {
  return bytes.every((byte) => byte === 0)
}

async function* unzstded(pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  try {
    yield* decodeZstd(pieces)
  } catch (error) {
    throw error instanceof ZstdError ? new DamagedDataError('zstd', error) : error
  }
}

async function* startingWith(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  yield* rest
}

async function firstBytes(pieces: AsyncGenerator<Buffer>, count: number): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0)
  while (head.length < count) {
    const { value, done } = await pieces.next()
    if (done === true) break
    head = Buffer.concat([head, value])
  }
  return head
}

function isZlibError(error: unknown): error is Error {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('Z_')
  )
}
