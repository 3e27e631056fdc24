// Snapshot rows as JSON objects, byte for byte what JSON.stringify makes of the record: one array (json) or one object a
// line (ndjson). Field order is the asked columns'; default interface.md section 2.4.

import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { DIGITS_MAX, writeDigits } from './ascii-digits.ts'
import {
  append,
  fragment,
  type Fragment,
  type RowFormat,
  type SnapshotRow,
  type TextTarget,
} from './row-encoder.ts'

const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const CLOSE_BRACE = 0x7d
const MINUS = 0x2d
const ONE = 0x31
const PRICES = 100
const LEVEL_BYTES = 24

const encoder = new TextEncoder()

// `,{"price":NN,"qty":` of every price, padded to three doubles: bytes that are ASCII are never a NaN, so a double
// carries eight of them through unchanged.
const levelWords = new Float64Array((PRICES * LEVEL_BYTES) / 8)
const levelLengths = new Uint8Array(PRICES)
for (let price = 0; price < PRICES; price++) {
  const text = encoder.encode(`,{"price":${price},"qty":`)
  levelLengths[price] = text.length
  new Uint8Array(levelWords.buffer, price * LEVEL_BYTES, LEVEL_BYTES).fill(0x20).set(text)
}
const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

export class JsonRowFormat implements RowFormat {
  readonly contentBefore: Uint8Array
  readonly betweenRows: Fragment
  readonly afterRow: Fragment
  readonly contentAfter: Uint8Array
  readonly rowBytesMax: number
  readonly tsColumn: number
  readonly columnCount: number
  readonly beforeTs: Fragment
  readonly #columns: readonly SnapshotColumn[]
  readonly #keys: readonly Fragment[]
  readonly #ids: readonly Fragment[]

  constructor(options: {
    columns: readonly SnapshotColumn[]
    levels: number
    marketIds: readonly string[]
    isArray: boolean
  }) {
    const { columns, levels, marketIds, isArray } = options
    this.contentBefore = encoder.encode(isArray ? '[' : '')
    this.betweenRows = fragment(isArray ? ',' : '')
    this.afterRow = fragment(isArray ? '}' : '}\n')
    this.contentAfter = encoder.encode(isArray ? ']' : '')
    this.#columns = columns
    this.#keys = columns.map((name, index) => fragment(`${index === 0 ? '{' : ','}"${name}":`))
    this.#ids = marketIds.map((id) => fragment(JSON.stringify(id)))
    this.columnCount = columns.length
    this.tsColumn = columns.indexOf('ts')
    this.beforeTs = this.#keys[this.tsColumn] ?? fragment('')
    const idBytes = this.#ids.reduce((longest, id) => Math.max(longest, id.length), 0)
    this.rowBytesMax = 256 + idBytes + 2 * levels * (LEVEL_BYTES + DIGITS_MAX + 1)
  }

  writeColumn(target: TextTarget, start: number, column: number, row: SnapshotRow): number {
    const position = append(target, start, this.#keys[column]!)
    switch (this.#columns[column]) {
      case 'market_id':
        return append(target, position, this.#ids[row.marketIndex]!)
      case 'best_bid':
        return writeDigits(target.view, position, row.bestBid)
      case 'best_ask':
        return writeDigits(target.view, position, row.bestAsk)
      case 'spread':
        return writeSpread(target, position, row.spread)
      case 'mid':
        return writeMid(target, position, row.twiceMid)
      case 'bids':
        return writeLevels(target, position, row.bidCount, row.bidPrices, row.bidQtys)
      case 'asks':
        return writeLevels(target, position, row.askCount, row.askPrices, row.askQtys)
      default:
        throw new Error(`column ${this.#columns[column]} is not written here`)
    }
  }
}

/** A spread of -1 or more. */
export function writeSpread(target: TextTarget, position: number, spread: number): number {
  if (spread >= 0) return writeDigits(target.view, position, spread)
  target.bytes[position] = MINUS
  target.bytes[position + 1] = ONE
  return position + 2
}

/** Half of a non-negative integer: `45` or `45.5`. */
export function writeMid(target: TextTarget, position: number, twiceMid: number): number {
  const after = writeDigits(target.view, position, twiceMid >>> 1)
  if ((twiceMid & 1) === 0) return after
  target.bytes[after] = 0x2e
  target.bytes[after + 1] = 0x35
  return after + 2
}

function writeLevels(
  target: TextTarget,
  start: number,
  count: number,
  prices: Uint8Array,
  qtys: Float64Array,
): number {
  const { bytes, view } = target
  let position = start
  for (let level = 0; level < count; level++) {
    const price = prices[level]!
    const word = price * (LEVEL_BYTES / 8)
    view.setFloat64(position, levelWords[word]!, isLittleEndian)
    view.setFloat64(position + 8, levelWords[word + 1]!, isLittleEndian)
    view.setFloat64(position + 16, levelWords[word + 2]!, isLittleEndian)
    position = writeDigits(view, position + levelLengths[price]!, qtys[level]!)
    bytes[position++] = CLOSE_BRACE
  }
  // Every level begins with a comma; the first one's place is the bracket's.
  bytes[start] = OPEN_BRACKET
  if (count === 0) position++
  bytes[position] = CLOSE_BRACKET
  return position + 1
}
