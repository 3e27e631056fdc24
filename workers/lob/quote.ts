// The values of a quote: best prices, spread, mid, state. Prices are in cents; 0 if a side has no level. Rules: contract.md 28
// and 29.

import { BOOK_STATES, type BookState, type SnapshotColumn } from '../../shared/lob-task.ts'
import type { OrderBook } from './order-book.ts'

/** Ask minus bid, not below 0; -1 unless both sides have a level. */
export function spreadOf(bestBid: number, bestAsk: number): number {
  return bestBid === 0 || bestAsk === 0 ? -1 : Math.max(bestAsk - bestBid, 0)
}

/** Half of bid plus ask; 0 unless both sides have a level. */
export function midOf(bestBid: number, bestAsk: number): number {
  return bestBid === 0 || bestAsk === 0 ? 0 : (bestBid + bestAsk) / 2
}

/** Whether the book does not have this value of the quote; with `nulls=true` it is null. */
export function isMissing(column: SnapshotColumn, bestBid: number, bestAsk: number): boolean {
  if (column === 'best_bid') return bestBid === 0
  return bestAsk === 0 || (column !== 'best_ask' && bestBid === 0)
}

const numberOf = (state: BookState): number => BOOK_STATES.indexOf(state)
const [KNOWN, GAP, HELD, CARRIED, CROSSED] = [
  numberOf('known'),
  numberOf('gap'),
  numberOf('held'),
  numberOf('carried'),
  numberOf('crossed'),
]

/** The index of the book's state in BOOK_STATES, by the prices of its row. */
export function stateOf(book: OrderBook): number {
  if (!book.isKnown) return book.isHeldInGaps ? HELD : GAP
  const [bestBid, bestAsk] = [book.bestBid(), book.bestAsk()]
  if (bestBid !== 0 && bestAsk !== 0 && bestBid >= bestAsk) return CROSSED
  return book.isCarried ? CARRIED : KNOWN
}
