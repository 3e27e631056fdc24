// What an event's prices say about its outcome. The strikes exclude one another and one of them comes true, so their
// prices, divided by their sum, are a distribution. A strike without a known price makes the others' shares wrong: then
// there is none. Only the catalogue says which strikes there are; where it does not, there is none either.

import { type MarketNames, orderedStrikes, type Strike } from './strikes.ts'

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

/** The strikes that an event has, and those that its books show: they are the same only where nothing is missing. */
export class EventStrikes {
  readonly #listed: ReadonlySet<string>
  /** Listed or recorded, from cold to hot. */
  readonly all: readonly Strike[]

  /** @param listed by the catalogue; none where it lists nothing */
  constructor(listed: readonly string[], recorded: readonly string[], names?: MarketNames) {
    this.#listed = new Set(listed)
    this.all = orderedStrikes([...new Set([...listed, ...recorded])], names)
  }

  /** Percent of each of `all`; all null unless the price of every listed strike is known. */
  sharesOf(mids: readonly (number | null)[]): (number | null)[] {
    const isListed = this.all.every(({ market }) => this.#listed.has(market))
    return impliedDistribution(isListed ? mids : mids.map(() => null))
  }

  /** Such as `3 of 6 strikes`; empty where the catalogue lists nothing or every price is known. */
  missingText(mids: readonly (number | null)[]): string {
    const known = this.all.filter(
      ({ market }, place) => this.#listed.has(market) && mids[place] !== null,
    ).length
    return known === this.#listed.size ? '' : `${known} of ${this.#listed.size} strikes`
  }
}
