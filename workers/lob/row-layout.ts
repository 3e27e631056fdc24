// Lays out the columns of a text row in as few parts as possible. All but the timestamp and the levels are prepared texts, with
// keys and separators: one for each market, and one for each pair of best prices, which is made when the pair first occurs.

import { BOOK_STATES, type SnapshotColumn } from '../../shared/lob-task.ts'
import { TextTable } from '../output/text-table.ts'
import { CENTS_PER_DOLLAR } from './order-book.ts'
import { isMissing, midOf, spreadOf } from './quote.ts'

export const PART_TEXT = 0
export const PART_TS = 1
export const PART_MARKET = 2
export const PART_QUOTE = 3
export const PART_BIDS = 4
export const PART_ASKS = 5
export const PART_STATE = 6

/** The texts that a format writes around values, and its encoding of a text. */
export interface RowTexts {
  /** The text before the value of a column. */
  before(column: SnapshotColumn, index: number): string
  text(value: string): string
  /** The text for a missing value of the quote; null: the 0 or -1 of contract.md 29. */
  readonly missing: string | null
  readonly afterRow: string
}

/** One part of a row: its kind (PART_…), the number of its first text, and its texts by best prices. */
export interface RowPart {
  readonly kind: number
  readonly firstText: number
  readonly quote: QuoteTexts | null
}

type TemplateItem = { readonly text: string } | { readonly column: SnapshotColumn }

interface Template {
  kind: number
  readonly items: TemplateItem[]
}

const KIND_OF: Readonly<Record<SnapshotColumn, number>> = {
  ts: PART_TS,
  market_id: PART_MARKET,
  best_bid: PART_QUOTE,
  best_ask: PART_QUOTE,
  spread: PART_QUOTE,
  mid: PART_QUOTE,
  bids: PART_BIDS,
  asks: PART_ASKS,
  book_state: PART_STATE,
}
/** Best prices for which every number of the quote has its maximum length. */
const LONG_BID = 10
const LONG_ASK = 21

export class RowLayout {
  readonly parts: readonly RowPart[]
  readonly texts = new TextTable()
  /** Upper bound of a row's bytes without its ts and its levels. */
  readonly textBytesMax: number

  constructor(columns: readonly SnapshotColumn[], format: RowTexts, marketIds: readonly string[]) {
    let bytes = 0
    const add = (text: string): void => {
      this.texts.add(text)
    }
    this.parts = templatesOf(columns, format).map(({ kind, items }) => {
      const firstText = this.texts.size
      if (kind === PART_TEXT) add(fill(items, () => ''))
      if (kind === PART_MARKET) for (const id of marketIds) add(fill(items, () => format.text(id)))
      if (kind === PART_STATE) for (const state of BOOK_STATES) add(fill(items, () => format.text(state)))
      const quote = kind === PART_QUOTE ? new QuoteTexts(items, this.texts, format.missing) : null
      // The longest text is one of these two: all values present, or all missing.
      quote?.textOf(LONG_BID, LONG_ASK)
      quote?.textOf(0, 0)
      bytes += Math.max(0, ...this.texts.lengths.subarray(firstText, this.texts.size))
      return { kind, firstText, quote }
    })
    this.textBytesMax = bytes
  }
}

/** The texts of one run of best_bid, best_ask, spread and mid. */
export class QuoteTexts {
  readonly #items: readonly TemplateItem[]
  readonly #texts: TextTable
  readonly #missing: string | null
  /** Text numbers by `bid * 100 + ask`; -1 until the text is made. */
  readonly #numbers = new Int32Array(CENTS_PER_DOLLAR ** 2).fill(-1)

  constructor(items: readonly TemplateItem[], texts: TextTable, missing: string | null) {
    this.#items = items
    this.#texts = texts
    this.#missing = missing
  }

  /** The number of the text for two best prices in cents, 0 for none. */
  textOf(bestBid: number, bestAsk: number): number {
    const known = this.#numbers[bestBid * CENTS_PER_DOLLAR + bestAsk]!
    return known >= 0 ? known : this.#make(bestBid, bestAsk)
  }

  #make(bestBid: number, bestAsk: number): number {
    const values: Partial<Record<SnapshotColumn, number>> = {
      best_bid: bestBid,
      best_ask: bestAsk,
      spread: spreadOf(bestBid, bestAsk),
      mid: midOf(bestBid, bestAsk),
    }
    const textOf = (column: SnapshotColumn): string =>
      this.#missing !== null && isMissing(column, bestBid, bestAsk) ? this.#missing : String(values[column])
    const number = this.#texts.add(fill(this.#items, textOf))
    this.#numbers[bestBid * CENTS_PER_DOLLAR + bestAsk] = number
    return number
  }
}

function fill(items: readonly TemplateItem[], valueOf: (column: SnapshotColumn) => string): string {
  return items.map((item) => ('text' in item ? item.text : valueOf(item.column))).join('')
}

/** Texts are joined to the market or quote next to them; the timestamp and the levels are parts of their own. */
function templatesOf(columns: readonly SnapshotColumn[], format: RowTexts): Template[] {
  const templates: Template[] = []
  let open: Template | undefined
  const begin = (kind: number): Template => {
    open = { kind, items: [] }
    templates.push(open)
    return open
  }
  const addText = (text: string): void => {
    if (text !== '') (open ?? begin(PART_TEXT)).items.push({ text })
  }
  for (const [index, column] of columns.entries()) {
    const kind = KIND_OF[column]
    addText(format.before(column, index))
    if (kind === PART_MARKET || kind === PART_QUOTE || kind === PART_STATE) {
      if (open?.kind === PART_TEXT) open.kind = kind
      else if (open?.kind !== kind) begin(kind)
      open!.items.push({ column })
    } else {
      begin(kind)
      open = undefined
    }
  }
  addText(format.afterRow)
  return templates
}
