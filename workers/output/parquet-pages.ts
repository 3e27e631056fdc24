// The bytes of one uncompressed parquet page and the encodings that Bookcast writes: dictionary codes in whole bytes, bit-packed
// repetition and definition levels, little-endian integers. Codes have widths of 8, 16 or 24 bits, not the narrowest width:
// packing is then a copy, and snappy finds the repetition from row to row.
// Source: https://github.com/apache/parquet-format/blob/master/Encodings.md

import { grownInto } from './grown-into.ts'

const PAGE_BYTES_MIN = 4096
/** UTF-8 bytes of one UTF-16 code unit. */
const UTF8_BYTES_MAX = 3
const TWO_POWER_32 = 0x1_0000_0000

/** A page under construction. It grows geometrically and keeps its memory for the next page. */
export class PageBuffer {
  #bytes = new Uint8Array(PAGE_BYTES_MIN)
  #view = new DataView(this.#bytes.buffer)
  #texts = Buffer.from(this.#bytes.buffer)
  #size = 0

  /** The underlying bytes; `[0, size)` is the page. Valid until the next reservation. */
  get bytes(): Uint8Array {
    return this.#bytes
  }

  /** A view of the underlying bytes. Valid until the next reservation. */
  get view(): DataView {
    return this.#view
  }

  get size(): number {
    return this.#size
  }

  clear(): void {
    this.#size = 0
  }

  /** Makes room for `sizeBytes` more and returns their start. The bytes keep old content. */
  reserve(sizeBytes: number): number {
    const start = this.#size
    this.#size += sizeBytes
    if (this.#size > this.#bytes.length) {
      const capacity = Math.max(this.#size, 2 * this.#bytes.length)
      this.#bytes = grownInto(new Uint8Array(capacity), this.#bytes.subarray(0, start))
      this.#view = new DataView(this.#bytes.buffer)
      this.#texts = Buffer.from(this.#bytes.buffer)
    }
    return start
  }

  /** Sets the size to `sizeBytes`, after more was reserved than used. */
  truncate(sizeBytes: number): void {
    this.#size = sizeBytes
  }

  appendByte(value: number): void {
    const at = this.reserve(1)
    this.#bytes[at] = value
  }

  appendUint32(value: number): void {
    const at = this.reserve(4)
    this.#view.setUint32(at, value, true)
  }

  appendBytes(bytes: Uint8Array): void {
    const at = this.reserve(bytes.length)
    this.#bytes.set(bytes, at)
  }

  /** Appends a text in PLAIN encoding: the length of its UTF-8 bytes, and the bytes. */
  appendText(text: string): void {
    const at = this.reserve(4 + UTF8_BYTES_MAX * text.length)
    const length = this.#texts.write(text, at + 4, 'utf8')
    this.#view.setUint32(at, length, true)
    this.truncate(at + 4 + length)
  }

  /** ULEB128 of an integer of at most 53 bits. */
  appendVarint(value: number): void {
    let rest = value
    while (rest > 0x7f) {
      this.appendByte((rest % 0x80) | 0x80)
      rest = Math.floor(rest / 0x80)
    }
    this.appendByte(rest)
  }
}

/** Dictionary codes of up to 24 bits, split so that codes of two bytes are copied into a page as they are in memory. */
export class CodeArray {
  /** Bits 0 to 15 of each code. */
  low: Uint16Array
  /** Bits 16 to 23. */
  high: Uint8Array

  constructor(capacity: number) {
    this.low = new Uint16Array(capacity)
    this.high = new Uint8Array(capacity)
  }

  get capacity(): number {
    return this.low.length
  }

  /** Keeps the codes and doubles the capacity, at least to `capacityMin`. */
  grow(capacityMin: number): void {
    const capacity = Math.max(capacityMin, 2 * this.low.length)
    this.low = grownInto(new Uint16Array(capacity), this.low)
    this.high = grownInto(new Uint8Array(capacity), this.high)
  }
}

/** The narrowest whole-byte width of the codes 0 … `codeCount - 1`. */
export function codeWidthBytes(codeCount: number): number {
  return codeCount <= 0x100 ? 1 : codeCount <= 0x10000 ? 2 : 3
}

/** Appends dictionary codes of one byte each, as one bit-packed run. */
export function appendByteCodes(page: PageBuffer, codes: Uint8Array, count: number): void {
  const start = reserveCodes(page, count, 1)
  page.bytes.set(codes.subarray(0, count), start)
}

/** Appends dictionary codes below `codeCount`, as one bit-packed run of whole bytes. */
export function appendCodes(page: PageBuffer, codes: CodeArray, count: number, codeCount: number): void {
  const width = codeWidthBytes(codeCount)
  const start = reserveCodes(page, count, width)
  const { low, high } = codes
  // The usual width is a plain copy: on every platform of uWebSockets.js, typed arrays are little-endian, as parquet is.
  if (width === 2) page.bytes.set(new Uint8Array(low.buffer, 0, 2 * count), start)
  else if (width === 1) narrowTo8(page.bytes, start, low, count)
  else joinTo24(page.view, start, low, high, count)
}

/** Writes the bit width and the run's header; returns the start of the codes. The run is padded to a multiple of eight. */
function reserveCodes(page: PageBuffer, count: number, widthBytes: number): number {
  page.appendByte(8 * widthBytes)
  if (count === 0) return page.size
  const groups = Math.ceil(count / 8)
  page.appendVarint(2 * groups + 1)
  const start = page.reserve(8 * groups * widthBytes)
  page.bytes.fill(0, start + count * widthBytes, page.size)
  return start
}

function narrowTo8(bytes: Uint8Array, start: number, low: Uint16Array, count: number): void {
  for (let i = 0; i < count; i++) bytes[start + i] = low[i]!
}

function joinTo24(view: DataView, start: number, low: Uint16Array, high: Uint8Array, count: number): void {
  for (let i = 0; i < count; i++) {
    view.setUint16(start + 3 * i, low[i]!, true)
    view.setUint8(start + 3 * i + 2, high[i]!)
  }
}

/** Appends one bit per row, set if the row has a value, as one bit-packed run after its size. Returns the number of nulls. */
export function appendDefinitionLevels(
  page: PageBuffer,
  rows: number,
  isNull: (row: number) => boolean,
): number {
  const start = reserveLevels(page, rows)
  const { bytes } = page
  let nullCount = 0
  for (let row = 0; row < rows; row++) {
    if (isNull(row)) nullCount++
    else bytes[start + (row >>> 3)]! |= 1 << (row & 7)
  }
  return nullCount
}

/** Reserves a run of one bit per row, all clear, after its size. Returns the start of the bits. */
export function reserveLevels(page: PageBuffer, rows: number): number {
  const sizeAt = page.reserve(4)
  const groups = Math.ceil(rows / 8)
  page.appendVarint(2 * groups + 1)
  const start = page.reserve(groups)
  page.view.setUint32(sizeAt, page.size - sizeAt - 4, true)
  page.bytes.fill(0, start, start + groups)
  return start
}

/**
 * Appends repetition and definition levels (maximum 1) of a required list of required elements. A row of n elements has n
 * entries (an empty row has one). The first entry of a row has repetition level 0; an empty row has definition level 0.
 */
export function appendListLevels(
  page: PageBuffer,
  rowLengths: Uint8Array,
  rows: number,
  entries: number,
  emptyRows: number,
): void {
  appendLevelBits(page, rowLengths, rows, entries, 0xff)
  if (emptyRows > 0) {
    appendLevelBits(page, rowLengths, rows, entries, 0)
    return
  }
  // Every definition level is 1: a single run, after its size.
  const sizeAt = page.reserve(4)
  page.appendVarint(2 * entries)
  page.appendByte(1)
  page.view.setUint32(sizeAt, page.size - sizeAt - 4, true)
}

/** One bit per entry: clear at the first entry of each row whose length is at most `clearAtLengthMax`, else set. */
function appendLevelBits(
  page: PageBuffer,
  rowLengths: Uint8Array,
  rows: number,
  entries: number,
  clearAtLengthMax: number,
): void {
  const start = reserveLevels(page, entries)
  const { bytes, size } = page
  bytes.fill(0xff, start, size)
  let entry = 0
  for (let row = 0; row < rows; row++) {
    const length = rowLengths[row]!
    if (length <= clearAtLengthMax) bytes[start + (entry >>> 3)]! &= ~(1 << (entry & 7))
    entry += length === 0 ? 1 : length
  }
  if ((entries & 7) !== 0) bytes[size - 1]! &= (1 << (entries & 7)) - 1
}

/** Appends `values[codes[i]]` as PLAIN INT64. Values are non-negative safe integers. */
export function appendPlainInt64(
  page: PageBuffer,
  values: Float64Array,
  codes: CodeArray,
  count: number,
): void {
  const start = page.reserve(8 * count)
  const view = page.view
  const { low, high } = codes
  for (let i = 0; i < count; i++) setSafeInteger(view, start + 8 * i, values[low[i]! | (high[i]! << 16)]!)
}

/** Writes a non-negative safe integer as eight little-endian bytes. */
export function setSafeInteger(view: DataView, at: number, value: number): void {
  view.setUint32(at, value >>> 0, true)
  view.setUint32(at + 4, Math.floor(value / TWO_POWER_32), true)
}
