// What a side of a book may be made of.

import { PRICE_UNITS_PER_DOLLAR } from '../../shared/lob-v1.ts'
import { BadLineError } from './bad-line.ts'

/** Throws where a side (prices in 1/10000 dollar) has a price twice: which of two quantities is meant would be a guess. */
export function refusePriceTwice(levels: readonly { readonly price: number }[]): void {
  const seen = new Set<number>()
  for (const { price } of levels) {
    if (seen.has(price))
      throw new BadLineError(`a book with the price ${price / PRICE_UNITS_PER_DOLLAR} twice`)
    seen.add(price)
  }
}
