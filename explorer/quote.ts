// The best quotes of a book as one price. An absent bid counts as 0 cents and an absent ask as 100: the lowest and the
// highest value of a contract.

/**
 * The mid price, cents; null if the book is empty or unknown.
 * @param bestBid cents, 0 without a bid
 * @param bestAsk cents, 0 without an ask
 */
export function quoteMid(bestBid: number, bestAsk: number): number | null {
  if (bestBid === 0 && bestAsk === 0) return null
  return (bestBid + (bestAsk === 0 ? 100 : bestAsk)) / 2
}
