// The best prices of a book and what follows from them. Cents; 0 where a side has no level. Rules: contract.md 28
// and 29.

import type { SnapshotColumn } from '../../shared/lob-task.ts'

/** Ask minus bid, not below 0; -1 unless both sides have a level. */
export function spreadOf(bestBid: number, bestAsk: number): number {
  return bestBid === 0 || bestAsk === 0 ? -1 : Math.max(bestAsk - bestBid, 0)
}

/** Half of bid plus ask; 0 unless both sides have a level. */
export function midOf(bestBid: number, bestAsk: number): number {
  return bestBid === 0 || bestAsk === 0 ? 0 : (bestBid + bestAsk) / 2
}

/** Whether the book does not have a value of its quote: `nulls=true` makes it null. */
export function isMissing(column: SnapshotColumn, bestBid: number, bestAsk: number): boolean {
  if (column === 'best_bid') return bestBid === 0
  return bestAsk === 0 || (column !== 'best_ask' && bestBid === 0)
}
