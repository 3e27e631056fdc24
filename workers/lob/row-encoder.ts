// Snapshot rows as text, straight into the bytes of a chunk. A market whose row has not changed since its last one in
// the same chunk is copied with a new time stamp. Formats differ only in how a column is written (row-format-*.ts).

import { DIGITS_MAX, writeDigits } from '../output/ascii-digits.ts'
import type { TextTarget } from '../output/text-target.ts'
import { CENTS_PER_DOLLAR, OrderBook, type BookSide } from './order-book.ts'

/**
 * The values of one snapshot row; reused from row to row. Prices in cents. The levels themselves are read from the
 * book's sides when they are written.
 */
export class SnapshotRow {
  marketIndex = 0
  bestBid = 0
  bestAsk = 0
  spread = -1
  /** Twice the mid price, so that it is an integer. */
  twiceMid = 0
  bids: BookSide
  asks: BookSide

  constructor({ bids, asks }: OrderBook) {
    this.bids = bids
    this.asks = asks
  }

  /** Takes the row of a market from its book. Rules: decisions.md "Limit order book". */
  take(marketIndex: number, { bids, asks }: OrderBook): void {
    this.marketIndex = marketIndex
    this.bids = bids
    this.asks = asks
    const bid = bids.bestSlot()
    const askSlot = asks.bestSlot()
    const ask = askSlot === 0 ? 0 : CENTS_PER_DOLLAR - askSlot
    const isTwoSided = bid !== 0 && ask !== 0
    this.bestBid = bid
    this.bestAsk = ask
    this.spread = isTwoSided ? Math.max(ask - bid, 0) : -1
    this.twiceMid = isTwoSided ? bid + ask : 0
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
  return { words: littleEndianDoubles(words), length: bytes.length }
}

/** Doubles that, written little-endian, are the bytes that lie in `words` now, whatever this machine's byte order. */
export function littleEndianDoubles(words: Float64Array): Float64Array {
  const view = new DataView(words.buffer)
  return words.map((_, index) => view.getFloat64(index * 8, true))
}

/** Writes a fragment; up to seven bytes past its end may be touched. */
export function append(target: TextTarget, position: number, { words, length }: Fragment): number {
  for (let index = 0, at = position; index < words.length; index++, at += 8) {
    target.view.setFloat64(at, words[index]!, true)
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
  readonly #row = new SnapshotRow(new OrderBook())
  readonly #generations: Int32Array
  readonly #starts: Int32Array
  readonly #lengths: Int32Array
  readonly #tsOffsets: Int32Array
  readonly #tsDigits = new Uint8Array(TS_BYTES_MAX)
  readonly #tsView = new DataView(this.#tsDigits.buffer)
  #tsLength = 0
  #tsSeconds = -1
  #isFirst = true

  constructor(format: RowFormat, marketCount: number) {
    this.#format = format
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
