// The trades of a view: marks on the plot, sized by contracts, and the table below it.

import { ApiError, type Trade } from '../clients/typescript/bookcast.ts'
import { NS_PER_SECOND } from '../shared/utc-date.ts'
import { answerOf, type ApiRequest, type ParameterValue } from './api-request.ts'
import { DataTable } from './data-table.ts'
import { element } from './element.ts'
import { sourceOf } from './lob-requests.ts'
import { indexAt } from './market-lines.ts'
import { countText, instantText } from './number-text.ts'
import { asLobSource } from './sources.ts'
import type { TimeWindow } from './time-window.ts'
import type { ViewContext } from './view.ts'

const COLUMNS = ['ts', 'market_id', 'price', 'qty', 'aggressor'] as const
/** The limit of the request for trades. */
const TRADES_MAX = 50_000
const RADIUS_PX = { min: 2.5, max: 10 } as const
const NOTE =
  'Marks are trades, sized by contracts. They point up where the taker bought and down where the taker sold; others are round.'

type MarkedTrade = Pick<Trade, (typeof COLUMNS)[number]>

export interface MarkCanvas {
  readonly context: CanvasRenderingContext2D
  readonly area: {
    readonly left: number
    readonly top: number
    readonly width: number
    readonly height: number
  }
  /** Canvas units per CSS pixel. */
  readonly ratio: number
  readonly outline: string
  readonly window: TimeWindow
  readonly xOf: (ms: number) => number
  readonly yOf: (price: number) => number
  readonly colourOf: (market: string) => string
}

export class TradeMarks {
  /** The table, hidden while there are no trades. */
  readonly root = element('div', { hidden: true })
  readonly #context: ViewContext
  readonly #table = new DataTable('Trades')
  readonly #note = element('p', { class: 'note' }, NOTE)
  readonly #request: ApiRequest<MarkedTrade>
  readonly #times: number[] = []
  readonly #trades: MarkedTrade[] = []
  #isListed = false
  #largestQty = 0

  /** @param names the parameter that names the markets */
  constructor(context: ViewContext, names: Readonly<Record<string, ParameterValue>>, onTrades: () => void) {
    const { state } = context
    this.#context = context
    this.#request = {
      title: 'trades',
      method: 'trades',
      parameters: { ...sourceOf(state), ...names, date: state.date, columns: COLUMNS, limit: TRADES_MAX },
    }
    this.root.append(this.#note, this.#table.root)
    void this.#load(onTrades)
  }

  /** The request, if the date has trades. */
  get requests(): readonly ApiRequest[] {
    return this.#isListed ? [this.#request] : []
  }

  /** Shows the trades in the table. With several markets, `labelOf` returns the label of a market. */
  showTable(labelOf?: (market: string) => string): void {
    this.root.hidden = this.#trades.length === 0
    if (this.#trades.length === TRADES_MAX)
      this.#note.textContent = `${NOTE} Only the first ${countText(TRADES_MAX)} are shown.`
    const names = labelOf === undefined ? [] : ['Strike']
    this.#table.setRows(['Time (UTC)', ...names, 'Cents', 'Contracts', 'Taker'], {
      count: this.#trades.length,
      cellsOf: (index) => {
        const { market_id: market, price, qty, aggressor } = this.#trades[index]!
        const labels = labelOf === undefined ? [] : [labelOf(market)]
        return [instantText(this.#times[index]!), ...labels, String(price), String(qty), aggressor]
      },
    })
  }

  setCursor(ms: number): void {
    if (this.#trades.length > 0) this.#table.setCurrent(indexAt(this.#times, ms))
  }

  draw({ context, area, ratio, outline, window, xOf, yOf, colourOf }: MarkCanvas): void {
    context.save()
    context.beginPath()
    context.rect(area.left, area.top, area.width, area.height)
    context.clip()
    context.strokeStyle = outline
    context.lineWidth = ratio
    for (let index = indexAt(this.#times, window.fromMs); index < this.#times.length; index += 1) {
      const ms = this.#times[index]!
      if (ms >= window.toMs) break
      const { market_id: market, price, qty, aggressor } = this.#trades[index]!
      context.fillStyle = colourOf(market)
      context.beginPath()
      const radius = ratio * markRadius(qty, this.#largestQty)
      mark(context, aggressor, xOf(ms), yOf(price), radius)
      context.fill()
      context.stroke()
    }
    context.restore()
  }

  /** Checks first whether the lake has trades: a request for the trades of a series without any is an error. */
  async #load(onTrades: () => void): Promise<void> {
    const { session, state, panel, signal } = this.#context
    const { source, series, date } = state
    try {
      const parameters = {
        dataset: 'trades',
        source: asLobSource(source),
        series,
        from: date,
        to: date,
      } as const
      const files = await session.client.files(parameters, { signal }).toArray()
      if (files.length === 0 || signal.aborted) return
    } catch {
      // The request for the books reports the error.
      return
    }
    this.#isListed = true
    panel.add(this.#request)
    try {
      const answer = answerOf(session.client, this.#request, { signal })
      for await (const trades of answer.batches()) {
        for (const trade of trades as MarkedTrade[]) this.#add(trade)
        onTrades()
      }
    } catch (error) {
      // An event outside the catalogue may have no trades, and a server without a store does not have this endpoint.
      const isNone =
        error instanceof ApiError && ['unknown_market', 'unknown_series', 'unknown_path'].includes(error.code)
      if (!signal.aborted && !isNone) panel.showError(error)
    }
  }

  #add(trade: MarkedTrade): void {
    this.#times.push(trade.ts / (NS_PER_SECOND / 1000))
    this.#trades.push(trade)
    this.#largestQty = Math.max(this.#largestQty, trade.qty)
  }
}

/** The radius grows with the square root of the quantity. */
export function markRadius(qty: number, largestQty: number): number {
  return RADIUS_PX.min + (RADIUS_PX.max - RADIUS_PX.min) * Math.sqrt(qty / largestQty)
}

function mark(
  context: CanvasRenderingContext2D,
  aggressor: string,
  x: number,
  y: number,
  radius: number,
): void {
  if (aggressor === 'unknown') {
    context.arc(x, y, radius, 0, 2 * Math.PI)
    return
  }
  const base = aggressor === 'bid' ? radius : -radius
  context.moveTo(x - radius, y + base)
  context.lineTo(x + radius, y + base)
  context.lineTo(x, y - base)
  context.closePath()
}
