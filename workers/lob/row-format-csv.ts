// Snapshot rows as csv (RFC 4180, lines end with LF): a header line, and `bids`/`asks` as one price and one quantity
// column a level, empty where the book has no such level. Column names: decisions.md "Limit order book".

import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { DIGITS_MAX, writeDigits } from '../output/ascii-digits.ts'
import { CENTS_PER_DOLLAR, type BookSide } from './order-book.ts'
import { append, fragment, type Fragment, type RowFormat, type SnapshotRow } from './row-encoder.ts'
import type { TextTarget } from '../output/text-target.ts'
import { writeMid, writeSpread } from './row-format-json.ts'

const COMMA = 0x2c
const encoder = new TextEncoder()

export class CsvRowFormat implements RowFormat {
  readonly contentBefore: Uint8Array
  readonly betweenRows = fragment('')
  readonly afterRow = fragment('\n')
  readonly contentAfter = new Uint8Array(0)
  readonly rowBytesMax: number
  readonly tsColumn: number
  readonly columnCount: number
  readonly beforeTs: Fragment
  readonly #columns: readonly SnapshotColumn[]
  readonly #ids: readonly Fragment[]
  readonly #levels: number

  constructor(options: { columns: readonly SnapshotColumn[]; levels: number; marketIds: readonly string[] }) {
    const { columns, levels, marketIds } = options
    const names = columns.flatMap((name) => csvColumnNames(name, levels))
    this.contentBefore = encoder.encode(`${names.join(',')}\n`)
    this.#columns = columns
    this.#levels = levels
    this.#ids = marketIds.map((id) => fragment(csvField(id)))
    this.columnCount = columns.length
    this.tsColumn = columns.indexOf('ts')
    this.beforeTs = fragment(this.tsColumn > 0 ? ',' : '')
    const idBytes = this.#ids.reduce((longest, id) => Math.max(longest, id.length), 0)
    this.rowBytesMax = 128 + idBytes + 2 * levels * (4 + DIGITS_MAX)
  }

  writeColumn(target: TextTarget, start: number, column: number, row: SnapshotRow): number {
    let position = start
    if (column > 0) target.bytes[position++] = COMMA
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
        return writeLevels(target, position, this.#levels, row.bids, false)
      case 'asks':
        return writeLevels(target, position, this.#levels, row.asks, true)
      default:
        throw new Error(`column ${this.#columns[column]} is not written here`)
    }
  }
}

function csvColumnNames(column: SnapshotColumn, levels: number): string[] {
  if (column !== 'bids' && column !== 'asks') return [column]
  const side = column === 'bids' ? 'bid' : 'ask'
  return Array.from({ length: levels }, (_, level) => [
    `${side}_price_${level + 1}`,
    `${side}_qty_${level + 1}`,
  ]).flat()
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

function writeLevels(
  target: TextTarget,
  start: number,
  levels: number,
  side: BookSide,
  isAsk: boolean,
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
      position = writeDigits(view, position, isAsk ? CENTS_PER_DOLLAR - slot : slot)
      bytes[position++] = COMMA
      position = writeDigits(view, position, contracts[slot]!)
      bytes[position++] = COMMA
      shownFrom = slot
    }
  }
  // A change behind the last of a full set of levels does not show.
  side.shownFrom = left === 0 ? shownFrom : 0
  // Two empty fields a level that the book does not have; the last field has no comma after it.
  for (; left > 0; left--) {
    bytes[position++] = COMMA
    bytes[position++] = COMMA
  }
  return position - 1
}
