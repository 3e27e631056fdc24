// Which colour stands for how many contracts.

import { element } from './element.ts'
import { countText } from './number-text.ts'
import { codeQuantity, quantityCode } from './quantity-scale.ts'
import { viridis } from './viridis.ts'

/** Keys for 1, 10, 100 … up to the largest quantity there is. */
export function scaleLegend(largestCode: number): HTMLElement[] {
  const keys: HTMLElement[] = []
  for (let quantity = 1; quantity <= codeQuantity(largestCode); quantity *= 10) {
    const swatch = element('span', { class: 'swatch', 'aria-hidden': 'true' })
    const [red, green, blue] = viridis((quantityCode(quantity) - 1) / Math.max(1, largestCode - 1))
    swatch.style.background = `rgb(${red}, ${green}, ${blue})`
    keys.push(element('span', { class: 'key' }, swatch, countText(quantity)))
  }
  return [element('span', {}, 'Contracts:'), ...keys]
}
