// The book of one market over a date: the quantity at every price and time, and the ladder at the cursor. Zooming in requests
// a finer interval automatically.

import { MS_PER_HOUR } from '../shared/utc-date.ts'
import { BookHistory } from './book-history.ts'
import { type BookRequest, bookRequestFor } from './book-request.ts'
import { DataTable } from './data-table.ts'
import { ASK_COLOUR, BID_COLOUR, DepthMap } from './depth-map.ts'
import { element } from './element.ts'
import { LadderTable } from './ladder-table.ts'
import { bookRequest, dayBounds, intervalOf } from './lob-requests.ts'
import { onNextFrame } from './next-frame.ts'
import { countText, instantText } from './number-text.ts'
import { plotFrame } from './plot-frame.ts'
import { colourKey, scaleLegend } from './scale-legend.ts'
import { namesOf, orderedStrikes, shortened } from './strikes.ts'
import { TimeView } from './time-view.ts'
import { TradeMarks } from './trade-marks.ts'
import type { TimeWindow } from './time-window.ts'
import type { View, ViewContext } from './view.ts'

const SHORTEST_MS = 10_000
/** Rows are requested once the window has not moved for this long. */
const SETTLE_MS = 250
const NOTE =
  'Contracts at each price, UTC; the colour is logarithmic. Hatched: no book is known. Zooming in asks for every second by itself.'

class BookView implements View {
  readonly #context: ViewContext
  readonly #time: TimeView
  readonly #map: DepthMap
  readonly #ladder = new LadderTable()
  readonly #table = new DataTable('Best quotes')
  readonly #trades: TradeMarks
  readonly #legend = element('div', { class: 'legend' })
  readonly #bounds: TimeWindow
  readonly #show = onNextFrame(() => this.#draw())
  #history: BookHistory | null = null
  #asked: { readonly interval: number | string; readonly hour: number | null } | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #legendCode = 0

  constructor(context: ViewContext) {
    const { state, host } = context
    this.#context = context
    this.#bounds = dayBounds(state.date)
    const [strike] = orderedStrikes([state.market], namesOf(context.markets))
    const name = strike?.isNamed === true ? strike.label : state.market
    const { plot, side, below } = plotFrame(
      host,
      `${shortened(name, 80)} on ${shortened(state.date, 40)}`,
      NOTE,
    )
    this.#time = new TimeView({
      context,
      bounds: this.#bounds,
      shortestMs: SHORTEST_MS,
      onWindow: () => this.#onWindow(),
      onCursor: (ms) => this.#showCursor(ms),
    })
    this.#trades = new TradeMarks(context, { market: state.market }, this.#show)
    this.#map = new DepthMap(plot, this.#time.get, this.#time.listener, this.#trades)
    below.append(this.#legend, this.#time.bar.root, this.#table.root, this.#trades.root)
    side.append(this.#ladder.root)
    void this.#load(this.#wanted())
  }

  follow(state: ViewContext['state']): void {
    this.#time.follow(state)
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#map.destroy()
  }

  /** The request that the window needs. An interval chosen by the user applies to the whole date. */
  #wanted(): { readonly interval: number | string; readonly hour: number | null } {
    const automatic: BookRequest = bookRequestFor(this.#bounds.fromMs, this.#time.window)
    if (this.#context.state.interval === '') return automatic
    return { interval: intervalOf(this.#context.state, automatic.interval), hour: null }
  }

  #onWindow(): void {
    // The ladder and the table do not depend on the window.
    this.#map.show(this.#history)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      const wanted = this.#wanted()
      const isThere = wanted.interval === this.#asked?.interval && wanted.hour === this.#asked.hour
      if (!isThere && !this.#context.signal.aborted) void this.#load(wanted)
    }, SETTLE_MS)
  }

  async #load(wanted: { readonly interval: number | string; readonly hour: number | null }): Promise<void> {
    const { panel, state } = this.#context
    this.#asked = wanted
    const request = bookRequest(state, wanted)
    const fromMs = this.#bounds.fromMs + (wanted.hour ?? 0) * MS_PER_HOUR
    const spanMs = wanted.hour === null ? this.#bounds.toMs - fromMs : MS_PER_HOUR
    const intervalMs = 1000 * (Number(wanted.interval) || 60)
    const history = new BookHistory(fromMs, spanMs, intervalMs)
    const loading = panel.begin([request, ...this.#trades.requests])
    await loading.read(
      request,
      (rows) => {
        history.add(rows)
        // The previous history stays on screen until the first rows of the new one arrive.
        if (!loading.signal.aborted) this.#history = history
        this.#show()
      },
      history.tickCount,
    )
    this.#show()
  }

  #draw(): void {
    if (this.#context.signal.aborted) return
    this.#map.show(this.#history)
    this.#trades.showTable()
    const history = this.#history
    if (history === null) return
    const first = history.endTick - history.rows
    this.#table.setRows(['Time (UTC)', 'Bid', 'Ask', 'Levels'], {
      count: history.rows,
      cellsOf: (index) => this.#cells(history, first + index),
    })
    this.#time.bar.setTicks({
      count: history.rows,
      timeOf: (index) => history.timeOf(first + index),
      indexAt: (ms) => Math.max(0, history.tickAt(ms) - first),
    })
    if (this.#legendCode !== history.largestCode) {
      this.#legendCode = history.largestCode
      this.#legend.replaceChildren(
        ...scaleLegend(history.largestCode),
        colourKey('best bid', BID_COLOUR),
        colourKey('best ask', ASK_COLOUR),
      )
    }
    this.#time.showCursor(history.timeOf(lastQuoted(history)))
  }

  #cells(history: BookHistory, tick: number): string[] {
    const { bids, asks } = history.ladderAt(tick)
    const quotes = [history.bestBids[tick], history.bestAsks[tick]]
    return [
      instantText(history.timeOf(tick)),
      ...quotes.map((price) => (price === 0 || price === undefined ? '–' : String(price))),
      countText(bids.length + asks.length),
    ]
  }

  #showCursor(ms: number): string {
    const history = this.#history
    if (history === null) return ''
    const tick = history.tickAt(ms)
    const tickMs = history.timeOf(tick)
    this.#map.setCursor(tickMs)
    this.#trades.setCursor(ms)
    this.#table.setCurrent(Math.max(0, tick - (history.endTick - history.rows)))
    this.#ladder.show(`Book at ${instantText(tickMs)}`, history.ladderAt(tick))
    const [, bid = '–', ask = '–'] = this.#cells(history, tick)
    return `${instantText(tickMs)}: bid ${bid}, ask ${ask}`
  }
}

/** The last tick with both a bid and an ask; without one, the last tick. */
function lastQuoted({ bestBids, bestAsks, endTick }: BookHistory): number {
  for (let tick = endTick - 1; tick >= 0; tick -= 1)
    if (bestBids[tick] !== 0 && bestAsks[tick] !== 0) return tick
  return Math.max(0, endTick - 1)
}

export function openBookView(context: ViewContext): View {
  return new BookView(context)
}
