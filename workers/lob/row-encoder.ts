// Writes snapshot rows as text in the thread's row buffer: prepared texts (row-layout.ts), the digits of the timestamp, and the
// levels in the format's encoding (row-format-*.ts). If a market's row is unchanged, its last row in the buffer is copied with
// the new timestamp.

import type { LobQuery, SnapshotColumn } from '../../shared/lob-task.ts'
import { DIGITS_MAX, writeDigits } from '../output/ascii-digits.ts'
import { TEXT_SLACK_BYTES, type TextTable } from '../output/text-table.ts'
import type { BookSide, OrderBook } from './order-book.ts'
import { stateOf } from './quote.ts'
import { rowBytes, rowView } from './row-buffer.ts'
import {
  PART_BIDS,
  PART_MARKET,
  PART_QUOTE,
  PART_STATE,
  PART_TEXT,
  PART_TS,
  RowLayout,
  type RowPart,
  type RowTexts,
} from './row-layout.ts'

// V8 looks up an imported name at every use, but compiles a constant of this module into the code.
const view = rowView

/** The parameters of a query that determine the text of its rows. */
export type RowShape = Pick<LobQuery, 'columns' | 'levels' | 'nulls'>

export interface RowFormat {
  readonly columns: readonly SnapshotColumn[]
  readonly contentBefore: Uint8Array
  /** An ASCII character between two rows, or null. */
  readonly separator: string | null
  readonly texts: RowTexts
  readonly contentAfter: Uint8Array
  /** Upper bound of the bytes of one side's levels, including the bytes that writing them may touch. */
  readonly sideBytesMax: number
  /** Writes the levels of a side into the row buffer and returns the position after them. */
  writeLevels(position: number, side: BookSide, isAsk: boolean): number
}

const NS_DIGITS = 9
const TS_BYTES_MAX = DIGITS_MAX + NS_DIGITS

export class TextRowEncoder {
  position = 0
  /** Bytes the row buffer must have left before `encodeRow`. */
  readonly reserveBytes: number
  readonly #format: RowFormat
  readonly #parts: readonly RowPart[]
  readonly #texts: TextTable
  readonly #separator: number
  /** The start of each market's last row in the buffer, or -1. */
  readonly #starts: Int32Array
  readonly #lengths: Int32Array
  /** The offset of ts in that row; -1 without a ts. */
  readonly #tsOffsets: Int32Array
  readonly #tsBytes = new Uint8Array(Math.ceil(TS_BYTES_MAX / 8) * 8)
  readonly #tsDigits = new DataView(this.#tsBytes.buffer)
  #tsLength = 0
  #tsSeconds = -1
  #isFirst: boolean

  /** `isRest`: the answer has rows before the first one of this encoder. */
  constructor(format: RowFormat, marketIds: readonly string[], isRest = false) {
    this.#isFirst = !isRest
    const layout = new RowLayout(format.columns, format.texts, marketIds)
    this.#format = format
    this.#parts = layout.parts
    this.#texts = layout.texts
    this.#separator = format.separator?.charCodeAt(0) ?? 0
    this.#starts = new Int32Array(marketIds.length).fill(-1)
    this.#lengths = new Int32Array(marketIds.length)
    this.#tsOffsets = new Int32Array(marketIds.length).fill(-1)
    this.reserveBytes = 1 + TS_BYTES_MAX + layout.textBytesMax + 2 * format.sideBytesMax + TEXT_SLACK_BYTES
  }

  /** Returns the rows in the buffer, valid until the next call, and empties the buffer. */
  takeRows(): Uint8Array {
    const rows = rowBytes.subarray(0, this.position)
    this.position = 0
    this.#starts.fill(-1)
    return rows
  }

  /** Appends one row. The caller must ensure that `reserveBytes` are left. */
  encodeRow(seconds: number, marketIndex: number, book: OrderBook): void {
    if (seconds !== this.#tsSeconds) this.#setTs(seconds)
    let start = this.position
    if (this.#isFirst) this.#isFirst = false
    else if (this.#separator !== 0) view.setUint8(start++, this.#separator)
    const from = this.#starts[marketIndex]!
    const end =
      !book.isChanged && from >= 0
        ? this.#copyRow(start, from, marketIndex)
        : this.#writeRow(start, marketIndex, book)
    this.#starts[marketIndex] = start
    this.#lengths[marketIndex] = end - start
    this.position = end
  }

  #setTs(seconds: number): void {
    // Whole seconds followed by nine zeros: exact nanoseconds, which a double would round.
    let position = writeDigits(this.#tsDigits, 0, seconds)
    if (seconds !== 0) {
      this.#tsBytes.fill(0x30, position, position + NS_DIGITS)
      position += NS_DIGITS
    }
    // Rows with a timestamp of another length cannot be copied.
    if (position !== this.#tsLength) this.#starts.fill(-1)
    this.#tsLength = position
    this.#tsSeconds = seconds
  }

  /** Writes the digits of ts and no byte more, since the bytes after them may already be written. */
  #writeTs(position: number): number {
    const end = this.#tsLength
    let index = 0
    for (; index + 8 <= end; index += 8) {
      view.setFloat64(position + index, this.#tsDigits.getFloat64(index))
    }
    for (; index < end; index++) view.setUint8(position + index, this.#tsBytes[index]!)
    return position + end
  }

  #writeText(start: number, number: number): number {
    const { words, starts, lengths } = this.#texts
    const end = starts[number + 1]!
    for (let index = starts[number]!, position = start; index < end; index++, position += 8) {
      view.setFloat64(position, words[index]!, true)
    }
    return start + lengths[number]!
  }

  #copyRow(start: number, from: number, marketIndex: number): number {
    const length = this.#lengths[marketIndex]!
    rowBytes.copyWithin(start, from, from + length)
    const tsAt = this.#tsOffsets[marketIndex]!
    if (tsAt >= 0) this.#writeTs(start + tsAt)
    return start + length
  }

  #writeRow(start: number, marketIndex: number, book: OrderBook): number {
    book.isChanged = false
    const parts = this.#parts
    let position = start
    for (let index = 0; index < parts.length; index++) {
      const { kind, firstText, quote } = parts[index]!
      if (kind === PART_TEXT) position = this.#writeText(position, firstText)
      else if (kind === PART_MARKET) position = this.#writeText(position, firstText + marketIndex)
      else if (kind === PART_QUOTE) {
        position = this.#writeText(position, quote!.textOf(book.bestBid(), book.bestAsk()))
      } else if (kind === PART_TS) {
        this.#tsOffsets[marketIndex] = position - start
        position = this.#writeTs(position)
      } else if (kind === PART_STATE) position = this.#writeText(position, firstText + stateOf(book))
      else if (kind === PART_BIDS) position = this.#format.writeLevels(position, book.bids, false)
      else position = this.#format.writeLevels(position, book.asks, true)
    }
    return position
  }
}
