// Decompresses recordings. The first bytes show the compression; the file's name does not matter. gzip and zstd are read (several
// members or frames in one input are one recording). For other formats the error names the command that opens them: they have no
// well-maintained streaming decoder with bounded memory.

import { createGunzip } from 'node:zlib'
import { ZstdError, decodeZstd } from './zstd-decoder.ts'

// The same size as the pieces of plain files (import-input.ts).
const UNZIPPED_PIECE_BYTES = 120 * 1024
// The decompressed text of one part is in memory at once: at most 16 MiB.
const ZIPPED_PART_BYTES = 16 * 1024
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
    `${refused.name} is not supported; import reads plain text, gzip and zstd: ${refused.command} | bookcast import … -`,
  )
}

async function* gunzipped(pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip({ chunkSize: UNZIPPED_PIECE_BYTES })
  // Collected here: a failing stream discards what it holds.
  let texts: Buffer[] = []
  let wake: (() => void) | undefined
  const step = (begin: () => void): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve
      begin()
    })
  gunzip.on('data', (text: Buffer) => texts.push(text))
  // A write that ends gunzip does not call back.
  gunzip.on('end', () => wake?.()).on('error', () => wake?.())
  let isFollowed = false
  try {
    for await (const part of zippedParts(pieces)) {
      const from = gunzip.bytesWritten
      if (!gunzip.readableEnded) {
        const ready = texts
        texts = []
        const written = step(() => gunzip.write(part, () => wake?.()))
        yield* ready
        await written
      }
      // zlib stops silently at a zero byte after a member.
      isFollowed = gunzip.readableEnded && !isZero(part.subarray(gunzip.bytesWritten - from))
      if (isFollowed || gunzip.errored !== null) break
    }
    if (!gunzip.readableEnded && gunzip.errored === null) await step(() => gunzip.end())
    yield* texts
    if (gunzip.errored !== null) throw new DamagedDataError('gzip', gunzip.errored)
    if (isFollowed) throw new DamagedDataError('gzip', new Error('something else follows it'))
  } finally {
    gunzip.destroy()
  }
}

/**
 * The bytes of `pieces` in parts, which are ever smaller at the end: zlib discards the text of the write in which it fails,
 * and rubbish after a member is mostly short.
 */
async function* zippedParts(pieces: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  let last: Buffer = Buffer.alloc(0)
  for await (const piece of pieces) {
    for (let from = 0; from < last.length; from += ZIPPED_PART_BYTES)
      yield last.subarray(from, from + ZIPPED_PART_BYTES)
    last = piece
  }
  while (last.length > 0) {
    const size = Math.min(ZIPPED_PART_BYTES, Math.max(1, last.length >> 2))
    yield last.subarray(0, size)
    last = last.subarray(size)
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
