// Checks of the levels of a book's side.

import { PRICE_UNITS_PER_DOLLAR } from '../../shared/lob-v1.ts'
import { BadLineError } from './bad-line.ts'

/** Throws if a side (prices in 1/10000 dollar) has a price twice: its quantity would be a guess. */
export function refusePriceTwice(levels: readonly { readonly price: number }[]): void {
  const seen = new Set<number>()
  for (const { price } of levels) {
    if (seen.has(price))
      throw new BadLineError(`a book with the price ${price / PRICE_UNITS_PER_DOLLAR} twice`)
    seen.add(price)
  }
}
