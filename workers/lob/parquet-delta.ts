// DELTA_BINARY_PACKED timestamps: whole seconds in, INT64 nanoseconds out. Like those of dictionary codes, widths are whole
// bytes: the deltas of several markets (0, 0, 0, one interval, 0, …) then repeat byte by byte, and snappy removes them. A narrower
// packing saves nothing after snappy.
// Source: https://github.com/apache/parquet-format/blob/master/Encodings.md, "Delta Encoding"

import { NS_PER_SECOND } from '../../shared/utc-date.ts'
import type { PageBuffer } from '../output/parquet-pages.ts'

const BLOCK_VALUES = 128
const MINIBLOCKS_PER_BLOCK = 4
const MINIBLOCK_VALUES = BLOCK_VALUES / MINIBLOCKS_PER_BLOCK
const TWO_POWER_32 = 0x1_0000_0000

/** The maximum span of a page: the nanoseconds between two of its rows are exact in a double (104 days). */
export const DELTA_SPAN_S_MAX = Math.floor(Number.MAX_SAFE_INTEGER / NS_PER_SECOND)

/** Appends `seconds[0, count)`, at least one, never decreasing and spanning at most `DELTA_SPAN_S_MAX`. */
export function appendTimestampDeltas(page: PageBuffer, seconds: Float64Array, count: number): void {
  page.appendVarint(BLOCK_VALUES)
  page.appendVarint(MINIBLOCKS_PER_BLOCK)
  page.appendVarint(count)
  appendZigZagNs(page, seconds[0]!)
  // Delta i is value i + 1 minus value i.
  for (let block = 0; block < count - 1; block += BLOCK_VALUES) {
    appendBlock(page, seconds, block, Math.min(block + BLOCK_VALUES, count - 1))
  }
}

function appendBlock(page: PageBuffer, seconds: Float64Array, start: number, end: number): void {
  let minS = Number.POSITIVE_INFINITY
  for (let i = start; i < end; i++) minS = Math.min(minS, seconds[i + 1]! - seconds[i]!)
  appendZigZagNs(page, minS)
  const widthsAt = page.reserve(MINIBLOCKS_PER_BLOCK)
  page.bytes.fill(0, widthsAt, page.size)
  for (let miniblock = 0; miniblock < MINIBLOCKS_PER_BLOCK; miniblock++) {
    const first = start + miniblock * MINIBLOCK_VALUES
    if (first >= end) break
    const last = Math.min(first + MINIBLOCK_VALUES, end)
    let maxS = 0
    for (let i = first; i < last; i++) maxS = Math.max(maxS, seconds[i + 1]! - seconds[i]! - minS)
    const width = bytesOf(maxS * NS_PER_SECOND)
    page.bytes[widthsAt + miniblock] = 8 * width
    appendMiniblock(page, seconds, first, last, minS, width)
  }
}

/** A miniblock always has its full size; a short one is padded with zeros. */
function appendMiniblock(
  page: PageBuffer,
  seconds: Float64Array,
  first: number,
  last: number,
  minS: number,
  width: number,
): void {
  let at = page.reserve(MINIBLOCK_VALUES * width)
  const bytes = page.bytes
  bytes.fill(0, at, page.size)
  for (let i = first; i < last; i++) {
    const deltaNs = (seconds[i + 1]! - seconds[i]! - minS) * NS_PER_SECOND
    const low = deltaNs >>> 0
    const high = (deltaNs - low) / TWO_POWER_32
    for (let byte = 0; byte < width; byte++)
      bytes[at++] = byte < 4 ? low >>> (8 * byte) : high >>> (8 * byte - 32)
  }
}

function bytesOf(value: number): number {
  let width = 0
  for (let rest = value; rest >= 1; rest /= 0x100) width++
  return width
}

/** Appends seconds as nanoseconds, as a zig-zag varint. The value is never negative, so zig-zag doubles it. */
function appendZigZagNs(page: PageBuffer, seconds: number): void {
  let rest = BigInt(seconds) * BigInt(NS_PER_SECOND) * 2n
  while (rest > 0x7fn) {
    page.appendByte(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  page.appendByte(Number(rest))
}
