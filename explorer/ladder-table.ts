// The book of one instant as a table: asks above, the spread, bids below. Beside each level is the total quantity from the
// best price up to that level.

import type { Ladder, Level } from './book-history.ts'
import { element, scroller, tableHead } from './element.ts'
import { countText } from './number-text.ts'

export class LadderTable {
  readonly root: HTMLElement
  readonly #caption = element('caption')
  readonly #body = element('tbody')

  constructor() {
    const table = element(
      'table',
      { class: 'ladder' },
      this.#caption,
      tableHead(['Total', 'Bid', 'Price', 'Ask', 'Total']),
      this.#body,
    )
    this.root = scroller('Ladder', table)
  }

  show(caption: string, { bids, asks }: Ladder): void {
    this.#caption.textContent = caption
    const ask = withTotals(asks).map(([price, qty, total]) => row(price, ['', '', qty, total], 'ask'))
    const bid = withTotals(bids).map(([price, qty, total]) => row(price, [total, qty, '', ''], 'bid'))
    const spread = note(spreadText(bids[0], asks[0]))
    const none = note('No book is known at this time.')
    const isEmpty = ask.length + bid.length === 0
    this.#body.replaceChildren(...(isEmpty ? [none] : [...ask.toReversed(), spread, ...bid]))
    // Scroll to the best prices.
    this.root.scrollTop = (isEmpty ? 0 : spread.offsetTop) - this.root.clientHeight / 2
  }
}

/** Levels from the best one on, each with the quantity up to it. */
function withTotals(levels: readonly Level[]): [price: number, qty: string, total: string][] {
  let total = 0
  return levels.map(({ price, qty }) => [price, countText(qty), countText((total += qty))])
}

function spreadText(bid: Level | undefined, ask: Level | undefined): string {
  if (ask === undefined) return 'no ask'
  if (bid === undefined) return 'no bid'
  return `spread ${Math.max(0, ask.price - bid.price)}¢`
}

function note(text: string): HTMLTableRowElement {
  return element('tr', { class: 'spread' }, element('td', { colspan: 5 }, text))
}

/** @param cells total and quantity of the bid, quantity and total of the ask */
function row(
  price: number,
  cells: readonly [string, string, string, string],
  side: string,
): HTMLTableRowElement {
  const [bidTotal, bid, ask, askTotal] = cells.map((text) => element('td', {}, text))
  const heading = element('th', { scope: 'row' }, `${price}¢`)
  return element('tr', { class: side }, bidTotal!, bid!, heading, ask!, askTotal!)
}
