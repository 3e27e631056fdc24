// The distribution that an event's prices imply. Exactly one of the strikes comes true, so their prices, divided by their
// sum, are a distribution. There is none if a strike has no known price, because the other shares would be wrong. Nor is
// there one without the catalogue, which alone lists all strikes of an event.

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

/** Shares as the upper edges of stacked bands, the first one at the bottom. */
export function stacked(shares: readonly (number | null)[]): (number | null)[] {
  let edge = 0
  return shares.map((share) => (share === null ? null : (edge += share)))
}

/** The strikes that the catalogue lists for an event, and those that have books. The two differ if something is missing. */
export class EventStrikes {
  readonly #listed: ReadonlySet<string>
  /** Listed or recorded, from cold to hot. */
  readonly all: readonly Strike[]

  /** @param listed the strikes in the catalogue, which may be none */
  constructor(listed: readonly string[], recorded: readonly string[], names?: MarketNames) {
    this.#listed = new Set(listed)
    this.all = orderedStrikes([...new Set([...listed, ...recorded])], names)
  }

  /** Percent of each of `all`; all null unless the price of every listed strike is known. */
  sharesOf(mids: readonly (number | null)[]): (number | null)[] {
    const isListed = this.all.every(({ market }) => this.#listed.has(market))
    return impliedDistribution(isListed ? mids : mids.map(() => null))
  }

  /** Text such as `3 of 6 strikes`; empty if the catalogue lists no strikes or every price is known. */
  missingText(mids: readonly (number | null)[]): string {
    const known = this.all.filter(
      ({ market }, place) => this.#listed.has(market) && mids[place] !== null,
    ).length
    return known === this.#listed.size ? '' : `${known} of ${this.#listed.size} strikes`
  }
}
