// Snapshot rows as JSON objects, byte for byte as JSON.stringify writes them: one per line (ndjson) or in an array.

import type { SnapshotColumn } from '../../shared/lob-task.ts'
import { DIGITS_MAX, writeDigits } from '../output/ascii-digits.ts'
import { littleEndianDoubles } from '../output/text-table.ts'
import { CENTS_PER_DOLLAR, type BookSide } from './order-book.ts'
import { rowView } from './row-buffer.ts'
import type { RowFormat, RowShape } from './row-encoder.ts'
import type { RowTexts } from './row-layout.ts'

// V8 looks up an imported name at every use, but compiles a constant of this module into the code.
const view = rowView

const OPEN_BRACKET = 0x5b
const CLOSE_BRACE_AND_BRACKET = 0x5d7d
const CLOSE_BRACKET = 0x5d
const SLOTS = CENTS_PER_DOLLAR + 1
const LEVEL_BYTES = 24
const LEVEL_WORDS = LEVEL_BYTES / 8

const encoder = new TextEncoder()

// The text between two quantities, `},{"price":NN,"qty":`, for every slot of a bid and then of an ask, padded to whole doubles
// (see text-table.ts). They are tables of the module, not of an object, so that their addresses are constants of the compiled
// loop.
const levelBytes = new Uint8Array(2 * SLOTS * LEVEL_BYTES)
const levelLengths = new Uint8Array(2 * SLOTS)
for (let slot = 0; slot < 2 * SLOTS; slot++) {
  const price = slot < SLOTS ? slot : CENTS_PER_DOLLAR - (slot - SLOTS)
  const text = encoder.encode(`},{"price":${price},"qty":`)
  levelBytes.set(text, slot * LEVEL_BYTES)
  levelLengths[slot] = text.length
}
const levelWords = littleEndianDoubles(new Float64Array(levelBytes.buffer))

export class JsonRowFormat implements RowFormat {
  readonly columns: readonly SnapshotColumn[]
  readonly contentBefore: Uint8Array
  readonly separator: string | null
  readonly texts: RowTexts
  readonly contentAfter: Uint8Array
  readonly sideBytesMax: number
  readonly #levels: number

  constructor({ columns, levels, nulls, isArray }: RowShape & { isArray: boolean }) {
    this.columns = columns
    this.contentBefore = encoder.encode(isArray ? '[' : '')
    this.separator = isArray ? ',' : null
    this.contentAfter = encoder.encode(isArray ? ']' : '')
    this.texts = {
      before: (name, index) => `${index === 0 ? '{' : ','}"${name}":`,
      text: (value) => JSON.stringify(value),
      missing: nulls ? 'null' : null,
      afterRow: isArray ? '}' : '}\n',
    }
    this.sideBytesMax = (levels + 1) * (LEVEL_BYTES + DIGITS_MAX)
    this.#levels = levels
  }

  writeLevels(start: number, side: BookSide, isAsk: boolean): number {
    const { bits, contracts } = side
    const table = isAsk ? SLOTS : 0
    const byteBefore = view.getUint8(start - 1)
    // The text of the first level begins with a superfluous `}`. It overwrites the byte before the start, which is restored below.
    let position = start - 1
    let left = this.#levels
    let shownFrom = 0
    for (let word = 3; word >= 0 && left > 0; word--) {
      for (let rest = bits[word]!; rest !== 0 && left > 0; left--) {
        const bit = 31 - Math.clz32(rest)
        rest ^= 1 << bit
        const slot = (word << 5) | bit
        const at = (table + slot) * LEVEL_WORDS
        view.setFloat64(position, levelWords[at]!, true)
        view.setFloat64(position + 8, levelWords[at + 1]!, true)
        view.setFloat64(position + 16, levelWords[at + 2]!, true)
        position = writeDigits(view, position + levelLengths[table + slot]!, contracts[slot]!)
        shownFrom = slot
      }
    }
    // If all levels are written, a change beyond the last one does not affect the row.
    side.shownFrom = left === 0 ? shownFrom : 0
    view.setUint8(start - 1, byteBefore)
    view.setUint8(start, OPEN_BRACKET)
    if (position < start) {
      view.setUint8(start + 1, CLOSE_BRACKET)
      return start + 2
    }
    view.setUint16(position, CLOSE_BRACE_AND_BRACKET, true)
    return position + 2
  }
}
