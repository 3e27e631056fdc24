// The best quotes of a book as one price. An absent bid is 0 cents and an absent ask 100: what a contract is worth at the
// least and at the most.

/**
 * The middle of the best quotes, cents; null where the book is empty or not known.
 * @param bestBid cents, 0 without a bid
 * @param bestAsk cents, 0 without an ask
 */
export function quoteMid(bestBid: number, bestAsk: number): number | null {
  if (bestBid === 0 && bestAsk === 0) return null
  return (bestBid + (bestAsk === 0 ? 100 : bestAsk)) / 2
}
