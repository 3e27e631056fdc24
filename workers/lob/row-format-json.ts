// Snapshot rows as JSON objects, byte for byte what JSON.stringify makes of the record: one array (json) or one object a
// line (ndjson). Field order is the asked columns'; default interface.md section 2.4.

import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { DIGITS_MAX, writeDigits } from '../output/ascii-digits.ts'
import { CENTS_PER_DOLLAR, type BookSide } from './order-book.ts'
import {
  append,
  fragment,
  littleEndianDoubles,
  type Fragment,
  type RowFormat,
  type SnapshotRow,
} from './row-encoder.ts'
import type { TextTarget } from '../output/text-target.ts'

const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const CLOSE_BRACE = 0x7d
const MINUS = 0x2d
const ONE = 0x31
const SLOTS = CENTS_PER_DOLLAR + 1
const LEVEL_BYTES = 24

const encoder = new TextEncoder()

// `,{"price":NN,"qty":` of every slot of a side, padded to three doubles: bytes that are ASCII are never a NaN, so a
// double carries eight of them through unchanged.
interface LevelTable {
  readonly words: Float64Array
  readonly lengths: Uint8Array
}

function levelTable(priceOf: (slot: number) => number): LevelTable {
  const words = new Float64Array((SLOTS * LEVEL_BYTES) / 8)
  const lengths = new Uint8Array(SLOTS)
  for (let slot = 0; slot < SLOTS; slot++) {
    const text = encoder.encode(`,{"price":${priceOf(slot)},"qty":`)
    lengths[slot] = text.length
    new Uint8Array(words.buffer, slot * LEVEL_BYTES, LEVEL_BYTES).fill(0x20).set(text)
  }
  return { words: littleEndianDoubles(words), lengths }
}

const BID_LEVELS = levelTable((slot) => slot)
const ASK_LEVELS = levelTable((slot) => CENTS_PER_DOLLAR - slot)

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
  readonly #levels: number

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
    this.#levels = levels
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
        return writeLevels(target, position, this.#levels, row.bids, BID_LEVELS)
      case 'asks':
        return writeLevels(target, position, this.#levels, row.asks, ASK_LEVELS)
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
  levels: number,
  side: BookSide,
  { words, lengths }: LevelTable,
): number {
  const { bytes, view } = target
  const { bits, contracts } = side
  let position = start
  let left = levels
  let shownFrom = 0
  for (let word = 3; word >= 0 && left > 0; word--) {
    for (let rest = bits[word]!; rest !== 0 && left > 0; left--) {
      const bit = 31 - Math.clz32(rest)
      rest ^= 1 << bit
      const slot = (word << 5) | bit
      const at = slot * (LEVEL_BYTES / 8)
      view.setFloat64(position, words[at]!, true)
      view.setFloat64(position + 8, words[at + 1]!, true)
      view.setFloat64(position + 16, words[at + 2]!, true)
      position = writeDigits(view, position + lengths[slot]!, contracts[slot]!)
      bytes[position++] = CLOSE_BRACE
      shownFrom = slot
    }
  }
  // A change behind the last of a full set of levels does not show.
  side.shownFrom = left === 0 ? shownFrom : 0
  // Every level begins with a comma; the first one's place is the bracket's.
  bytes[start] = OPEN_BRACKET
  if (position === start) position++
  bytes[position] = CLOSE_BRACKET
  return position + 1
}
