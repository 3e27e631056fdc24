// Snapshot rows as csv (RFC 4180, but lines end with LF): a header line; `bids` and `asks` as one price and one quantity column
// per level, empty if the book does not have the level. Column names: contract.md 30.

import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { DIGITS_MAX, writeDigits } from '../output/ascii-digits.ts'
import { CENTS_PER_DOLLAR, type BookSide } from './order-book.ts'
import { rowView } from './row-buffer.ts'
import type { RowFormat, RowShape } from './row-encoder.ts'
import type { RowTexts } from './row-layout.ts'

// V8 looks up an imported name at every use, but compiles a constant of this module into the code.
const view = rowView

const COMMA = 0x2c
const FOUR_COMMAS = 0x2c2c2c2c
const encoder = new TextEncoder()

export class CsvRowFormat implements RowFormat {
  readonly columns: readonly SnapshotColumn[]
  readonly contentBefore: Uint8Array
  readonly separator = null
  readonly texts: RowTexts
  readonly contentAfter = new Uint8Array(0)
  readonly sideBytesMax: number
  readonly #levels: number

  constructor({ columns, levels, nulls }: RowShape) {
    const names = columns.flatMap((name) => csvColumnNames(name, levels))
    this.columns = columns
    this.texts = {
      before: (_, index) => (index === 0 ? '' : ','),
      text: csvField,
      missing: nulls ? '' : null,
      afterRow: '\n',
    }
    this.contentBefore = encoder.encode(`${names.join(',')}\n`)
    this.sideBytesMax = (levels + 1) * (4 + DIGITS_MAX)
    this.#levels = levels
  }

  writeLevels(start: number, side: BookSide, isAsk: boolean): number {
    const { bits, contracts } = side
    let position = start
    let left = this.#levels
    let shownFrom = 0
    for (let word = 3; word >= 0 && left > 0; word--) {
      for (let rest = bits[word]!; rest !== 0 && left > 0; left--) {
        const bit = 31 - Math.clz32(rest)
        rest ^= 1 << bit
        const slot = (word << 5) | bit
        position = writeDigits(view, position, isAsk ? CENTS_PER_DOLLAR - slot : slot)
        view.setUint8(position, COMMA)
        position = writeDigits(view, position + 1, contracts[slot]!)
        view.setUint8(position, COMMA)
        position++
        shownFrom = slot
      }
    }
    // If all levels are written, a change beyond the last one does not affect the row.
    side.shownFrom = left === 0 ? shownFrom : 0
    // Two empty fields for each missing level. The last field has no comma after it.
    const end = position + 2 * left
    for (; position < end; position += 4) view.setUint32(position, FOUR_COMMAS)
    return end - 1
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
