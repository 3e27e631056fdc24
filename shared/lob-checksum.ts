// The checksum that a lob.v1 footer carries of itself: the last key-value pair's eight hex digits are the CRC-32 of the
// footer's thrift bytes with those digits read as zeros. Writer and reader share this one definition.

import { crc32 } from 'node:zlib'
import { LOB_FOOTER_KEYS } from './lob-v1.ts'

const DIGITS = 8
const PLACEHOLDER = '0'.repeat(DIGITS)
const KEY = Buffer.from(LOB_FOOTER_KEYS.footerCrc32)
// Between a key and its value thrift's compact protocol has a field header and the value's length, one byte each.
const BYTES_BETWEEN = 2

/** Eight lower-case hex digits, as lob.v1 writes every checksum. */
export function crc32Hex(bytes: Uint8Array): string {
  return crc32(bytes).toString(16).padStart(DIGITS, '0')
}

/**
 * Checks a footer (the thrift bytes alone: no length, no magic). `stored` is what it says of itself, `computed` what it
 * should say; `undefined` when the footer carries no checksum. The bytes are not changed.
 */
export function lobFooterChecksum(footer: Uint8Array): { stored: string; computed: string } | undefined {
  const bytes = Buffer.from(footer)
  const offset = digitsOffset(bytes)
  if (offset === undefined) return undefined
  const stored = bytes.toString('latin1', offset, offset + DIGITS)
  bytes.write(PLACEHOLDER, offset, 'latin1')
  return { stored, computed: crc32Hex(bytes) }
}

/** Puts the checksum into a footer that carries the key with any eight digits, in place. */
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
