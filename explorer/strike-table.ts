// The strikes of an event at one instant: quotes, mid price and implied share. The table is also the legend of the plot.

import { button, element, scroller, tableHead, tableRow } from './element.ts'
import type { EventStrikes } from './implied-distribution.ts'
import type { MarketLine } from './market-lines.ts'
import { valueText } from './number-text.ts'
import { shortened } from './strikes.ts'
import { strikeColour } from './theme.ts'

const CAPTION_CHARACTERS_MAX = 70

export class StrikeTable {
  readonly root: HTMLElement
  readonly #caption = element('caption')
  readonly #head = tableHead(['Strike', 'Bid', 'Ask', 'Mid', 'Implied'])
  readonly #body = element('tbody')
  readonly #onChoose: (market: string) => void

  /** @param onChoose called with a market to open its book */
  constructor(onChoose: (market: string) => void) {
    this.#onChoose = onChoose
    const table = element('table', { class: 'strikes' }, this.#caption, this.#head, this.#body)
    this.root = scroller('Strikes', table)
  }

  /**
   * @param index of the rows to show; null if no book is known
   * @param hasShares whether the markets exclude one another, so that their prices are a distribution
   */
  show(
    caption: string,
    {
      strikes,
      lines,
      index,
      hasShares,
    }: {
      readonly strikes: EventStrikes
      readonly lines: readonly (MarketLine | undefined)[]
      readonly index: number | null
      readonly hasShares: boolean
    },
  ): void {
    const cellOf = (cells: readonly (number | null)[] | undefined): number | null =>
      index === null ? null : (cells?.[index] ?? null)
    const mids = lines.map((line) => cellOf(line?.mids))
    const shares = hasShares ? strikes.sharesOf(mids) : mids.map(() => null)
    const implied = this.#head.querySelector<HTMLElement>('th:last-child')
    if (implied !== null) implied.hidden = !hasShares
    const missing = hasShares ? strikes.missingText(mids) : ''
    this.#caption.textContent = shortened(
      missing === '' ? caption : `${caption}: ${missing}`,
      CAPTION_CHARACTERS_MAX,
    )
    this.#body.replaceChildren(
      ...strikes.all.map(({ market, label }, place) => {
        const line = lines[place]
        const swatch = element('span', { class: 'swatch', 'aria-hidden': 'true' })
        swatch.style.background = strikeColour(place, strikes.all.length)
        const open = button(label, () => this.#onChoose(market), {
          class: 'link',
          title: shortened(market, 200),
        })
        open.setAttribute('aria-label', `${label}: open the book`)
        const share = shares[place]
        const cells = [
          quoteText(cellOf(line?.bids)),
          quoteText(cellOf(line?.asks)),
          valueText(mids[place]),
          ...(hasShares ? [share === null || share === undefined ? '–' : `${share.toFixed(1)} %`] : []),
        ]
        return tableRow([swatch, open], cells)
      }),
    )
  }
}

/** A price of 0 means that there is no quote. */
function quoteText(price: number | null | undefined): string {
  return price === 0 ? '–' : valueText(price)
}
