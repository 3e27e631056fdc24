// Snapshot rows as text, straight into the bytes of a chunk. A market whose row has not changed since its last one in
// the same chunk is copied with a new time stamp. Formats differ only in how a column is written (row-format-*.ts).

import { DIGITS_MAX, writeDigits } from './ascii-digits.ts'
import type { OrderBook } from './order-book.ts'

/** Where text goes: the chunk being filled. `generation` changes with every new chunk. */
export interface TextTarget {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly generation: number
  position: number
}

/** The values of one snapshot row; reused from row to row. Prices in cents, quantities in contracts. */
export class SnapshotRow {
  marketIndex = 0
  bestBid = 0
  bestAsk = 0
  spread = -1
  /** Twice the mid price, so that it is an integer. */
  twiceMid = 0
  bidCount = 0
  askCount = 0
  readonly bidPrices: Uint8Array
  readonly bidQtys: Float64Array
  readonly askPrices: Uint8Array
  readonly askQtys: Float64Array

  constructor(levels: number) {
    this.bidPrices = new Uint8Array(levels)
    this.bidQtys = new Float64Array(levels)
    this.askPrices = new Uint8Array(levels)
    this.askQtys = new Float64Array(levels)
  }

  /** Takes the row of a market from its book. Rules: decisions.md "Limit order book". */
  take(marketIndex: number, book: OrderBook): void {
    const levels = this.bidPrices.length
    this.marketIndex = marketIndex
    this.bidCount = book.takeBids(levels, this.bidPrices, this.bidQtys)
    this.askCount = book.takeAsks(levels, this.askPrices, this.askQtys)
    this.bestBid = this.bidCount === 0 ? 0 : this.bidPrices[0]!
    this.bestAsk = this.askCount === 0 ? 0 : this.askPrices[0]!
    const isTwoSided = this.bidCount > 0 && this.askCount > 0
    this.spread = isTwoSided ? Math.max(this.bestAsk - this.bestBid, 0) : -1
    this.twiceMid = isTwoSided ? this.bestBid + this.bestAsk : 0
  }
}

/** A few bytes of UTF-8 that are written often, as doubles: no eight bytes of UTF-8 are a NaN, so they pass unchanged. */
export interface Fragment {
  readonly words: Float64Array
  readonly length: number
}

/** Prepares bytes for `append`. */
export function fragment(text: string): Fragment {
  const bytes = new TextEncoder().encode(text)
  const words = new Float64Array(Math.ceil(bytes.length / 8))
  new Uint8Array(words.buffer).set(bytes)
  return { words, length: bytes.length }
}

const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

/** Writes a fragment; up to seven bytes past its end may be touched. */
export function append(target: TextTarget, position: number, { words, length }: Fragment): number {
  for (let index = 0, at = position; index < words.length; index++, at += 8) {
    target.view.setFloat64(at, words[index]!, isLittleEndian)
  }
  return position + length
}

/** How a text format writes its parts. Every writer returns the position after what it wrote. */
export interface RowFormat {
  readonly contentBefore: Uint8Array
  readonly betweenRows: Fragment
  readonly afterRow: Fragment
  readonly contentAfter: Uint8Array
  /** Upper bound of one row's bytes without its digits of ts. */
  readonly rowBytesMax: number
  /** Where the ts column stands among the columns; -1 when it was not asked for. */
  readonly tsColumn: number
  readonly columnCount: number
  writeColumn(target: TextTarget, position: number, column: number, row: SnapshotRow): number
  /** The bytes right before the digits of ts. */
  readonly beforeTs: Fragment
}

const NS_DIGITS = 9
const TS_BYTES_MAX = DIGITS_MAX + NS_DIGITS
// A table write ends with whole words: of digits, of a fragment, or of a level (24 bytes).
const SLACK_BYTES = 24

/** Bytes a buffer must have left before `encodeRow`. */
export function textRowReserve(format: RowFormat): number {
  return format.rowBytesMax + TS_BYTES_MAX + SLACK_BYTES
}

export class TextRowEncoder {
  readonly #format: RowFormat
  readonly #row: SnapshotRow
  readonly #generations: Int32Array
  readonly #starts: Int32Array
  readonly #lengths: Int32Array
  readonly #tsOffsets: Int32Array
  readonly #tsDigits = new Uint8Array(TS_BYTES_MAX)
  readonly #tsView = new DataView(this.#tsDigits.buffer)
  #tsLength = 0
  #tsSeconds = -1
  #isFirst = true

  constructor(format: RowFormat, levels: number, marketCount: number) {
    this.#format = format
    this.#row = new SnapshotRow(levels)
    this.#generations = new Int32Array(marketCount).fill(-1)
    this.#starts = new Int32Array(marketCount)
    this.#lengths = new Int32Array(marketCount)
    this.#tsOffsets = new Int32Array(marketCount)
  }

  /** Appends one row; the caller has made sure that `textRowReserve` bytes are left. */
  encodeRow(target: TextTarget, seconds: number, marketIndex: number, book: OrderBook): void {
    if (seconds !== this.#tsSeconds) this.#setTs(seconds)
    if (this.#isFirst) this.#isFirst = false
    else target.position = append(target, target.position, this.#format.betweenRows)
    const start = target.position
    const end =
      !book.isChanged && this.#generations[marketIndex] === target.generation
        ? this.#copyRow(target, start, marketIndex)
        : this.#writeRow(target, start, marketIndex, book)
    this.#generations[marketIndex] = target.generation
    this.#starts[marketIndex] = start
    this.#lengths[marketIndex] = end - start
    target.position = end
  }

  #setTs(seconds: number): void {
    // Whole seconds and nine zeros are the nanoseconds, exactly, whatever a double would round.
    let position = writeDigits(this.#tsView, 0, seconds)
    if (seconds !== 0) {
      this.#tsDigits.fill(0x30, position, position + NS_DIGITS)
      position += NS_DIGITS
    }
    this.#tsLength = position
    this.#tsSeconds = seconds
  }

  #copyRow(target: TextTarget, start: number, marketIndex: number): number {
    const from = this.#starts[marketIndex]!
    const length = this.#lengths[marketIndex]!
    target.bytes.copyWithin(start, from, from + length)
    const tsAt = this.#tsOffsets[marketIndex]!
    if (tsAt >= 0) writeTs(target, start + tsAt, this.#tsDigits, this.#tsLength)
    return start + length
  }

  #writeRow(target: TextTarget, start: number, marketIndex: number, book: OrderBook): number {
    const format = this.#format
    this.#row.take(marketIndex, book)
    book.isChanged = false
    this.#tsOffsets[marketIndex] = -1
    let position = start
    for (let column = 0; column < format.columnCount; column++) {
      if (column === format.tsColumn) {
        position = append(target, position, format.beforeTs)
        this.#tsOffsets[marketIndex] = position - start
        position = writeTs(target, position, this.#tsDigits, this.#tsLength)
      } else position = format.writeColumn(target, position, column, this.#row)
    }
    return append(target, position, format.afterRow)
  }
}

function writeTs(target: TextTarget, position: number, digits: Uint8Array, length: number): number {
  for (let index = 0; index < length; index++) target.bytes[position + index] = digits[index]!
  return position + length
}
