// Decodes the integer encodings of parquet pages into typed arrays without a BigInt or an object per value. 64-bit values become
// doubles relative to a base; a value that would not be exact (below 2^53) is an error. Sources: parquet-format Encodings.md,
// "RLE / bit-packing hybrid" and "DELTA_BINARY_PACKED".

export const TWO_32 = 4_294_967_296
const WIDTH_MAX_EXACT = 53
/** The usable bits of a 32-bit word that begins with up to seven bits of the value before. */
const WORD_BITS_SURE = 25
const WIDTH_MAX_SHARED = 12

/** A read position in page bytes. Reading past `end` throws. */
export interface ByteReader {
  readonly bytes: Uint8Array
  readonly view: DataView
  offset: number
  readonly end: number
}

/** A reader over a whole page. */
export function byteReader(bytes: Uint8Array): ByteReader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  return { bytes, view, offset: 0, end: bytes.length }
}

function readByte(reader: ByteReader): number {
  if (reader.offset >= reader.end) throw new Error('a page ends in the middle of a value')
  return reader.bytes[reader.offset++]!
}

function readVarInt(reader: ByteReader): number {
  let value = 0
  for (let scale = 1; ; scale *= 128) {
    const byte = readByte(reader)
    value += (byte & 127) * scale
    if (byte < 128) return value
    if (scale > Number.MAX_SAFE_INTEGER / 128) throw new Error('a length in a page is out of range')
  }
}

function readZigZagBigInt(reader: ByteReader): bigint {
  let value = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    const byte = readByte(reader)
    value |= BigInt(byte & 127) << shift
    if (byte < 128) return BigInt.asIntN(64, (value >> 1n) ^ -(value & 1n))
  }
  throw new Error('an integer in a page is out of range')
}

/** A varint of this many bytes has 49 bits, which are exact in a double. */
const VARINT_BYTES_EXACT = 7

/** Like `readZigZagBigInt`, but without a BigInt for short values, which are usual. */
function readZigZag(reader: ByteReader): number {
  const { offset } = reader
  let value = 0
  for (let index = 0, scale = 1; index < VARINT_BYTES_EXACT; index++, scale *= 128) {
    const byte = readByte(reader)
    value += (byte & 127) * scale
    if (byte < 128) return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }
  reader.offset = offset
  return exactNumber(readZigZagBigInt(reader))
}

function exactNumber(value: bigint): number {
  const number = Number(value)
  if (!Number.isSafeInteger(number)) throw new Error(`the value ${value} is out of the expected range`)
  return number
}

/**
 * Unpacks `count` values of `width` bits (0 … 32) of the RLE/bit-packing hybrid into `out` from `start`. With a `dictionary`, the
 * values are its codes, and `out` gets its entries; a run needs one lookup.
 */
export function readHybrid(
  reader: ByteReader,
  width: number,
  out: Int32Array,
  start: number,
  count: number,
  dictionary?: Int32Array,
): void {
  if (width > 32) throw new Error(`a bit width of ${width} is out of range`)
  const isLookedUp = dictionary !== undefined && !isIdentity(dictionary, width)
  let index = start
  const stop = start + count
  while (index < stop) {
    const header = readVarInt(reader)
    if (header < 2) throw new Error('an empty run in a page')
    if ((header & 1) === 0) {
      let value = 0
      for (let shift = 0; shift < width; shift += 8) value |= readByte(reader) << shift
      const runEnd = Math.min(index + header / 2, stop)
      out.fill(dictionary === undefined ? value : entryOf(dictionary, value), index, runEnd)
      index = runEnd
    } else {
      const groups = (header - 1) / 2
      const runEnd = Math.min(index + groups * 8, stop)
      unpackBits(reader, width, out, index, runEnd)
      if (isLookedUp) lookUp(dictionary, out, index, runEnd)
      index = runEnd
      reader.offset += groups * width
    }
  }
}

function entryOf(dictionary: Int32Array, code: number): number {
  const value = dictionary[code]
  if (value === undefined) throw new Error(`the dictionary code ${code} is out of range`)
  return value
}

/** Whether every code of `width` bits is equal to its entry. */
function isIdentity(dictionary: Int32Array, width: number): boolean {
  return dictionary.length === 2 ** width && dictionary.every((value, code) => value === code)
}

/** Replaces dictionary codes by the dictionary's entries, in place. */
function lookUp(dictionary: Int32Array, out: Int32Array, start: number, stop: number): void {
  const size = dictionary.length
  for (let index = start; index < stop; index++) {
    const code = out[index]!
    if (code < 0 || code >= size) throw new Error(`the dictionary code ${code} is out of range`)
    out[index] = dictionary[code]!
  }
}

/** Unpacks values of `width` ≤ 32 bits, packed from the least significant bit. Does not move the reader. */
function unpackBits(reader: ByteReader, width: number, out: Int32Array, start: number, stop: number): void {
  const { end } = reader
  if (reader.offset + Math.ceil(((stop - start) * width) / 8) > end) {
    throw new Error('a page ends in the middle of a value')
  }
  if (width > 24) {
    for (let index = start, bit = reader.offset * 8; index < stop; index++, bit += width) {
      out[index] = readBits(reader, bit, width) | 0
    }
    return
  }
  const mask = (1 << width) - 1
  const { view } = reader
  let bit = reader.offset * 8
  // A value and the bits before it in its first byte fit one unaligned word, except at the end of the page.
  const wordStop = Math.min(stop, start + Math.floor(((end - 4 - reader.offset) * 8) / Math.max(width, 1)))
  let index = start
  if (width > 0 && width <= WIDTH_MAX_SHARED) {
    // Several short values fit into one word.
    const perWord = Math.floor(WORD_BITS_SURE / width)
    for (; index + perWord <= wordStop; bit += perWord * width) {
      let word = view.getUint32(bit >>> 3, true) >>> (bit & 7)
      for (const next = index + perWord; index < next; index++, word >>>= width) out[index] = word & mask
    }
  }
  for (; index < wordStop; index++, bit += width) {
    out[index] = (view.getUint32(bit >>> 3, true) >>> (bit & 7)) & mask
  }
  for (; index < stop; index++, bit += width) out[index] = readBits(reader, bit, width)
}

/** Reads `width` ≤ 53 bits from bit position `bit`, as an unsigned double. Bytes after the page are read as zero. */
function readBits(reader: ByteReader, bit: number, width: number): number {
  const offset = Math.floor(bit / 8)
  const shift = bit - offset * 8
  let low: number
  let high: number
  if (offset + 12 <= reader.end) {
    low = reader.view.getUint32(offset, true)
    high = reader.view.getUint32(offset + 4, true)
    // Two steps, because a shift by 32 has no effect.
    low = ((low >>> shift) | ((high << (31 - shift)) << 1)) >>> 0
    if (width > 32) high = ((high >>> shift) | ((reader.bytes[offset + 8]! << (31 - shift)) << 1)) >>> 0
  } else {
    const tail = new Uint8Array(12)
    tail.set(reader.bytes.subarray(offset, Math.min(offset + 12, reader.end)))
    return readBits(byteReader(tail), shift, width)
  }
  if (width <= 32) return width === 32 ? low : (low & ((1 << width) - 1)) >>> 0
  const highWidth = width - 32
  return (highWidth === 32 ? high : (high & ((1 << highWidth) - 1)) >>> 0) * TWO_32 + low
}

/**
 * Unpacks the first `wanted` of a page's `count` DELTA_BINARY_PACKED integers, minus `base`, into `out` from `start`. It may
 * unpack some more.
 */
export function readDelta(
  reader: ByteReader,
  base: bigint,
  out: Float64Array,
  start: number,
  count: number,
  wanted = count,
): void {
  const blockValues = readVarInt(reader)
  const miniblocks = readVarInt(reader)
  const total = readVarInt(reader)
  const first = readZigZagBigInt(reader)
  const perMiniblock = blockValues / miniblocks
  if (total !== count) throw new Error(`a page holds ${total} values instead of ${count}`)
  if (!Number.isInteger(perMiniblock) || perMiniblock === 0 || perMiniblock % 8 !== 0 || miniblocks > 512) {
    throw new Error('a page has an impossible block size')
  }
  if (count === 0) return
  let previous = exactNumber(first - base)
  out[start] = previous
  const stop = start + count
  for (let index = start + 1; index < Math.min(stop, start + wanted);) {
    const minDelta = readZigZag(reader)
    const widthsAt = reader.offset
    reader.offset += miniblocks
    for (let block = 0; block < miniblocks && index < stop; block++) {
      const width = reader.bytes[widthsAt + block]
      if (width === undefined || width > WIDTH_MAX_EXACT)
        throw new Error('a delta is out of the expected range')
      const blockStop = Math.min(index + perMiniblock, stop)
      if (reader.offset + Math.ceil(((blockStop - index) * width) / 8) > reader.end) {
        throw new Error('a page ends in the middle of a value')
      }
      previous = addDeltas(reader, width, minDelta, previous, out, index, blockStop)
      index = blockStop
      reader.offset += (perMiniblock * width) / 8
    }
    if (!Number.isSafeInteger(previous)) throw new Error('a value is out of the expected range')
  }
}

/** Adds up one miniblock's deltas into `out` and returns the last sum. */
function addDeltas(
  reader: ByteReader,
  width: number,
  minDelta: number,
  before: number,
  out: Float64Array,
  start: number,
  stop: number,
): number {
  const { view } = reader
  let bit = reader.offset * 8
  let index = start
  let sum = before
  if (width <= 25) {
    // A delta and the bits before it in its first byte fit one unaligned word.
    const mask = (1 << width) - 1
    const wordStop =
      width === 0 ? start : Math.min(stop, start + Math.floor(((reader.end - 4) * 8 - bit) / width))
    for (; index < wordStop; index++, bit += width) {
      sum += minDelta + ((view.getUint32(bit >>> 3, true) >>> (bit & 7)) & mask)
      out[index] = sum
    }
  }
  for (; index < stop; index++, bit += width) {
    sum += minDelta + (width === 0 ? 0 : readBits(reader, bit, width))
    out[index] = sum
  }
  return sum
}
