// Snapshot rows as csv (RFC 4180, lines end with LF): a header line, and `bids`/`asks` as one price and one quantity
// column a level, empty where the book has no such level. Column names: decisions.md "Limit order book".

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
        return writeLevels(target, position, this.#levels, row.bidCount, row.bidPrices, row.bidQtys)
      case 'asks':
        return writeLevels(target, position, this.#levels, row.askCount, row.askPrices, row.askQtys)
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
  count: number,
  prices: Uint8Array,
  qtys: Float64Array,
): number {
  const { bytes, view } = target
  let position = start
  for (let level = 0; level < levels; level++) {
    if (level > 0) bytes[position++] = COMMA
    if (level < count) position = writeDigits(view, position, prices[level]!)
    bytes[position++] = COMMA
    if (level < count) position = writeDigits(view, position, qtys[level]!)
  }
  return position
}
