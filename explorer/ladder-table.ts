// The book of one instant as a table: asks above, bids below, best prices in the middle.

import type { Ladder } from './book-history.ts'
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
      tableHead(['Bid', 'Price', 'Ask']),
      this.#body,
    )
    this.root = scroller('Ladder', table)
  }

  show(caption: string, { bids, asks }: Ladder): void {
    this.#caption.textContent = caption
    const ask = asks.toReversed().map(({ price, qty }) => row(price, '', countText(qty), 'ask'))
    const bid = bids.map(({ price, qty }) => row(price, countText(qty), '', 'bid'))
    const none = element('tr', {}, element('td', { colspan: 3 }, 'No book is known at this time.'))
    this.#body.replaceChildren(...(ask.length + bid.length === 0 ? [none] : [...ask, ...bid]))
    // The best prices are what is looked for.
    const spread = bid[0]?.offsetTop ?? this.#body.offsetHeight
    this.root.scrollTop = spread - this.root.clientHeight / 2
  }
}

function row(price: number, bid: string, ask: string, side: string): HTMLTableRowElement {
  return element(
    'tr',
    { class: side },
    element('td', {}, bid),
    element('th', { scope: 'row' }, `${price}¢`),
    element('td', {}, ask),
  )
}
