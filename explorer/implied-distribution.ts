// What an event's prices say about its outcome. The strikes exclude one another and one of them comes true, so their
// prices, divided by their sum, are a distribution. A strike without a known price makes the others' shares wrong: then
// there is none.

/**
 * @param mids one price for each strike of one event at one instant, cents
 * @returns percent, in the same order; all null unless every price is known and some price is not 0
 */
export function impliedDistribution(mids: readonly (number | null)[]): (number | null)[] {
  const sum = mids.reduce<number | null>(
    (total, mid) => (total === null || mid === null ? null : total + mid),
    0,
  )
  return mids.map((mid) => (sum === null || sum === 0 || mid === null ? null : (100 * mid) / sum))
}

/** Shares as the upper edges of bands that lie on one another, the first one at the bottom. */
export function stacked(shares: readonly (number | null)[]): (number | null)[] {
  let edge = 0
  return shares.map((share) => (share === null ? null : (edge += share)))
}
