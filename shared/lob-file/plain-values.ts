// Reads PLAIN values of parquet pages into typed arrays (parquet-format Encodings.md, "PLAIN"). 64-bit values become doubles
// relative to a base; a value that would not be exact (below 2^53) is an error.

import { MARKET_ID_BYTES_MAX } from '../limits.ts'
import { type ByteReader, TWO_32 } from './unpack-integers.ts'

/** Reads `count` PLAIN little-endian 64-bit integers, minus `base`, into `out` from `start`. */
export function readPlainInt64(
  reader: ByteReader,
  base: bigint,
  out: Float64Array,
  start: number,
  count: number,
): void {
  if (reader.offset + count * 8 > reader.end) throw new Error('a page ends in the middle of a value')
  const baseLow = Number(BigInt.asUintN(32, base))
  const baseHigh = Number(base >> 32n)
  const { view } = reader
  for (let index = 0, offset = reader.offset; index < count; index++, offset += 8) {
    const value =
      (view.getInt32(offset + 4, true) - baseHigh) * TWO_32 + (view.getUint32(offset, true) - baseLow)
    if (value > Number.MAX_SAFE_INTEGER || value < -Number.MAX_SAFE_INTEGER) {
      throw new Error('a value is out of the expected range')
    }
    out[start + index] = value
  }
  reader.offset += count * 8
}

/** Reads `count` PLAIN little-endian 32-bit integers into `out` from `start`. */
export function readPlainInt32(reader: ByteReader, out: Int32Array, start: number, count: number): void {
  if (reader.offset + count * 4 > reader.end) throw new Error('a page ends in the middle of a value')
  const { view } = reader
  for (let index = 0, offset = reader.offset; index < count; index++, offset += 4) {
    out[start + index] = view.getInt32(offset, true)
  }
  reader.offset += count * 4
}

/** Throws for a market id that is too long. All strings of a file are market ids. */
export function refuseLongId(bytes: number): void {
  if (bytes > MARKET_ID_BYTES_MAX)
    throw new Error(`a market id has ${bytes} bytes; at most ${MARKET_ID_BYTES_MAX} are possible`)
}

/** Reads `count` PLAIN byte arrays as UTF-8 strings. */
export function readPlainStrings(reader: ByteReader, count: number): string[] {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  const strings: string[] = []
  for (let index = 0; index < count; index++) {
    if (reader.offset + 4 > reader.end) throw new Error('a page ends in the middle of a value')
    const length = reader.view.getUint32(reader.offset, true)
    refuseLongId(length)
    const start = reader.offset + 4
    if (start + length > reader.end) throw new Error('a page ends in the middle of a value')
    strings.push(decoder.decode(reader.bytes.subarray(start, start + length)))
    reader.offset = start + length
  }
  return strings
}
