// The legend of the colours.

import { element } from './element.ts'
import { countText } from './number-text.ts'
import { codeQuantity, quantityCode } from './quantity-scale.ts'
import { viridis } from './viridis.ts'

export function colourKey(name: string, colour: string): HTMLElement {
  const swatch = element('span', { class: 'swatch', 'aria-hidden': 'true' })
  swatch.style.background = colour
  return element('span', { class: 'key' }, swatch, name)
}

/** Keys for 1, 10, 100 … up to the largest quantity. */
export function scaleLegend(largestCode: number): HTMLElement[] {
  const keys: HTMLElement[] = []
  for (let quantity = 1; quantity <= codeQuantity(largestCode); quantity *= 10) {
    const [red, green, blue] = viridis((quantityCode(quantity) - 1) / Math.max(1, largestCode - 1))
    keys.push(colourKey(countText(quantity), `rgb(${red}, ${green}, ${blue})`))
  }
  return [element('span', {}, 'Contracts:'), ...keys]
}
