// The checksum of a candles or observations file: the eight hex digits of the footer's key `file_crc32` are the CRC-32 of the
// whole file with these digits replaced by zeros. Parquet has page checksums, but DuckDB (1.5) neither writes nor verifies them.
// The digits are located by the bytes of the key, not by parsing the footer, so that damage elsewhere cannot hide them.

import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { crc32 } from 'node:zlib'

export const RECORD_CHECKSUM_KEY = 'file_crc32'
/** The value that a writer stores before it computes the checksum. */
export const RECORD_CHECKSUM_PLACEHOLDER = '0'.repeat(8)

const DIGITS = RECORD_CHECKSUM_PLACEHOLDER.length
// In Thrift's compact protocol, a field header and the value's length, one byte each, stand between a key and its value.
const BYTES_BETWEEN = 2
/** The bytes to search: only the writer's name and the column orders follow the footer's key-values. */
const TAIL_BYTES = 16 * 1024
const CHUNK_BYTES = 256 * 1024

/** The checksum in the file, and the right one. */
export interface FileChecksum {
  readonly stored: string
  readonly computed: string
}

/**
 * Reads a whole file, in chunks, and computes its checksum; undefined if the file has none. Throws a plain Error if the file ends
 * before its size.
 */
export async function recordFileChecksum(file: FileHandle): Promise<FileChecksum | undefined> {
  const { size } = await file.stat()
  const digits = await findDigits(file, size)
  if (digits === undefined) return undefined
  return { stored: digits.text, computed: await checksumOf(file, size, digits.offset) }
}

/** Writes the checksum in place into a file that has the key with any eight digits, and syncs the file. */
export async function writeRecordFileChecksum(path: string): Promise<void> {
  const file = await open(path, 'r+')
  try {
    const { size } = await file.stat()
    const digits = await findDigits(file, size)
    if (digits === undefined) throw new Error(`${path} has no place for its checksum`)
    const computed = await checksumOf(file, size, digits.offset)
    await file.write(Buffer.from(computed, 'latin1'), 0, DIGITS, digits.offset)
    await file.sync()
  } finally {
    await file.close()
  }
}

async function findDigits(
  file: FileHandle,
  size: number,
): Promise<{ offset: number; text: string } | undefined> {
  const from = Math.max(0, size - TAIL_BYTES)
  const tail = Buffer.alloc(size - from)
  await readFully(file, tail, from)
  const key = tail.lastIndexOf(RECORD_CHECKSUM_KEY, undefined, 'latin1')
  const start = key + RECORD_CHECKSUM_KEY.length + BYTES_BETWEEN
  if (key === -1 || start + DIGITS > tail.length) return undefined
  return { offset: from + start, text: tail.toString('latin1', start, start + DIGITS) }
}

async function checksumOf(file: FileHandle, size: number, digitsOffset: number): Promise<string> {
  const chunk = Buffer.alloc(Math.min(CHUNK_BYTES, size))
  let checksum = 0
  for (let at = 0; at < size; at += chunk.length) {
    const bytes = chunk.subarray(0, Math.min(chunk.length, size - at))
    await readFully(file, bytes, at)
    const from = Math.max(0, digitsOffset - at)
    const to = Math.min(bytes.length, digitsOffset + DIGITS - at)
    if (from < to) bytes.fill('0', from, to, 'latin1')
    checksum = crc32(bytes, checksum)
  }
  return checksum.toString(16).padStart(DIGITS, '0')
}

async function readFully(file: FileHandle, bytes: Buffer, offset: number): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    const { bytesRead } = await file.read(bytes, done, bytes.length - done, offset + done)
    if (bytesRead === 0) throw new Error('it is truncated')
    done += bytesRead
  }
}
