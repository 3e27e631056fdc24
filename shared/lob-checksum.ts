// The checksum of a lob.v1 footer: the eight hex digits of its last key-value pair are the CRC-32 of the footer's Thrift bytes
// with these digits replaced by zeros. Writer and reader use this definition.

import { crc32 } from 'node:zlib'
import { LOB_FOOTER_KEYS } from './lob-v1.ts'

const DIGITS = 8
const PLACEHOLDER = '0'.repeat(DIGITS)
const KEY = Buffer.from(LOB_FOOTER_KEYS.footerCrc32)
// In Thrift's compact protocol, a field header and the value's length, one byte each, stand between a key and its value.
const BYTES_BETWEEN = 2

/** Eight lower-case hex digits, as lob.v1 writes every checksum. */
export function crc32Hex(bytes: Uint8Array): string {
  return crc32(bytes).toString(16).padStart(DIGITS, '0')
}

/**
 * Reads the stored checksum of a footer (only its Thrift bytes, without length and magic) and computes the right one; `undefined`
 * if the footer has no checksum. Does not change the bytes.
 */
export function lobFooterChecksum(footer: Uint8Array): { stored: string; computed: string } | undefined {
  const bytes = Buffer.from(footer)
  const offset = digitsOffset(bytes)
  if (offset === undefined) return undefined
  const stored = bytes.toString('latin1', offset, offset + DIGITS)
  bytes.write(PLACEHOLDER, offset, 'latin1')
  return { stored, computed: crc32Hex(bytes) }
}

/** Writes the checksum in place into a footer that has the key with any eight digits. */
export function writeLobFooterChecksum(footer: Uint8Array): void {
  const bytes = Buffer.from(footer.buffer, footer.byteOffset, footer.byteLength)
  const offset = digitsOffset(bytes)
  if (offset === undefined) throw new Error('the footer has no place for its checksum')
  bytes.write(PLACEHOLDER, offset, 'latin1')
  bytes.write(crc32Hex(bytes), offset, 'latin1')
}

function digitsOffset(footer: Buffer): number | undefined {
  const key = footer.lastIndexOf(KEY)
  if (key === -1) return undefined
  const offset = key + KEY.length + BYTES_BETWEEN
  if (offset + DIGITS > footer.length || footer[offset - 1] !== DIGITS) return undefined
  return offset
}
