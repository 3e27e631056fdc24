// The day: the prices of all strikes of an event over one UTC date.

import { listedStrikes } from './catalogue.ts'
import { DataTable } from './data-table.ts'
import { gapSpans } from './gap-spans.ts'
import { LinePlot } from './line-plot.ts'
import { dayBounds, intervalOf, quotesRequest, shownSeries } from './lob-requests.ts'
import { EventStrikes } from './implied-distribution.ts'
import { indexAt, MarketLines, tickAt } from './market-lines.ts'
import { onNextFrame } from './next-frame.ts'
import { instantText, valueText } from './number-text.ts'
import { plotFrame } from './plot-frame.ts'
import { StrikeTable } from './strike-table.ts'
import { isCatalogued } from './sources.ts'
import { namesOf, shortened } from './strikes.ts'
import { colour, strikeColour } from './theme.ts'
import { TimeView } from './time-view.ts'
import { TradeMarks } from './trade-marks.ts'
import type { View, ViewContext } from './view.ts'
import { ALL_EVENTS } from './view-state.ts'

const INTERVAL = 60
const SHORTEST_TICKS = 10
const NOTE =
  'Mid prices in cents, UTC. A side without orders counts as 0 or 100. Hatched: no book is known. Choose a strike to open its book.'

class DayView implements View {
  readonly #context: ViewContext
  readonly #lines = new MarketLines()
  readonly #time: TimeView
  readonly #host: HTMLElement
  readonly #table: DataTable
  readonly #strikeTable: StrikeTable
  readonly #trades: TradeMarks
  readonly #intervalMs: number
  readonly #show = onNextFrame(() => this.#draw())
  #plot: LinePlot | undefined
  readonly #listed: readonly string[]
  #strikes = new EventStrikes([], [])
  #isWhole = false

  constructor(context: ViewContext) {
    const { state } = context
    this.#context = context
    this.#listed = listedStrikes(context.markets, state.event)
    this.#intervalMs = 1000 * (Number(intervalOf(state, INTERVAL)) || INTERVAL)
    const { plot, side, below } = plotFrame(
      context.host,
      `${shortened(shownSeries(state), 80)} on ${shortened(state.date, 40)}`,
      NOTE,
    )
    this.#host = plot
    this.#time = new TimeView({
      context,
      bounds: dayBounds(state.date),
      shortestMs: SHORTEST_TICKS * this.#intervalMs,
      onWindow: () => this.#plot?.showWindow(),
      onCursor: (ms) => this.#showCursor(ms),
    })
    this.#table = new DataTable('Mids, cents')
    this.#strikeTable = new StrikeTable((market) => context.open({ view: 'book', market }))
    this.#trades = new TradeMarks(context, { series: shownSeries(state) }, this.#show)
    below.append(this.#time.bar.root, this.#table.root, this.#trades.root)
    side.append(this.#strikeTable.root)
    void this.#load()
  }

  follow(state: ViewContext['state']): void {
    this.#time.follow(state)
  }

  close(): void {
    this.#plot?.destroy()
  }

  async #load(): Promise<void> {
    const { panel, state } = this.#context
    const request = quotesRequest(state, { date: state.date }, INTERVAL)
    const loading = panel.begin([request, ...this.#trades.requests])
    this.#isWhole = await loading.read(request, (rows) => {
      this.#lines.add(rows)
      this.#show()
    })
    this.#show()
  }

  #draw(): void {
    if (this.#context.signal.aborted) return
    const { times } = this.#lines
    this.#updateStrikes()
    const ordered = this.#orderedLines()
    this.#plot?.setData(
      times,
      ordered.map((line) => line?.mids ?? []),
    )
    const bounds = dayBounds(this.#context.state.date)
    const endMs = (times.at(-1) ?? bounds.fromMs) + this.#intervalMs
    const domain = this.#isWhole ? bounds : { fromMs: bounds.fromMs, toMs: Math.min(endMs, bounds.toMs) }
    this.#plot?.setGaps(gapSpans(times, (index) => this.#lines.isKnown(index), this.#intervalMs, domain))
    this.#table.setRows(['Time (UTC)', ...this.#strikes.all.map(({ label }) => label)], {
      count: times.length,
      cellsOf: (index) => [
        instantText(times[index] ?? 0),
        ...ordered.map((line) => valueText(line?.mids[index])),
      ],
    })
    this.#trades.showTable((market) => {
      const strike = this.#strikes.all.find((each) => each.market === market)
      return strike?.label ?? shortened(market, 80)
    })
    this.#time.bar.setTicks({
      count: times.length,
      timeOf: (index) => times[index] ?? bounds.fromMs,
      indexAt: (ms) => indexAt(times, ms),
    })
    this.#time.showCursor(this.#lastKnown())
  }

  /** Whether the markets may exclude one another: those of one event. */
  get #hasShares(): boolean {
    const { source, event } = this.#context.state
    return isCatalogued(source) && event !== ALL_EVENTS
  }

  #updateStrikes(): void {
    const strikes = new EventStrikes(
      this.#listed,
      this.#lines.lines.map(({ market }) => market),
      namesOf(this.#context.markets),
    )
    const isSame = strikes.all.length === this.#strikes.all.length
    this.#strikes = strikes
    if (!isSame || this.#plot === undefined) this.#buildPlot()
  }

  #buildPlot(): void {
    this.#plot?.destroy()
    const count = this.#strikes.all.length
    const colours = new Map(
      this.#strikes.all.map(({ market }, index) => [market, strikeColour(index, count)]),
    )
    this.#plot = new LinePlot({
      host: this.#host,
      lines: this.#strikes.all.map(({ label }, index) => ({
        label,
        stroke: () => strikeColour(index, count),
        isStepped: true,
      })),
      yLabel: 'cents',
      yRange: [0, 100],
      get: this.#time.get,
      listener: this.#time.listener,
      draw: (plot) =>
        this.#trades.draw({
          context: plot.ctx,
          area: plot.bbox,
          ratio: devicePixelRatio,
          outline: colour('surface'),
          window: this.#time.get().window,
          xOf: (ms) => plot.valToPos(ms, 'x', true),
          yOf: (price) => plot.valToPos(price, 'y', true),
          colourOf: (market) => colours.get(market) ?? colour('ink'),
        }),
    })
  }

  #orderedLines() {
    const { lines } = this.#lines
    return this.#strikes.all.map(({ market }) => lines.find((line) => line.market === market))
  }

  #lastKnown(): number {
    const { times } = this.#lines
    for (let index = times.length - 1; index > 0; index -= 1)
      if (this.#lines.isKnown(index)) return times[index] ?? 0
    return times[0] ?? dayBounds(this.#context.state.date).fromMs
  }

  #showCursor(ms: number): string {
    const { times } = this.#lines
    if (times.length === 0) return ''
    const index = tickAt(times, ms, this.#intervalMs)
    const tickMs = index === null ? ms : (times[index] ?? ms)
    this.#plot?.setCursor(tickMs)
    this.#table.setCurrent(index)
    this.#trades.setCursor(ms)
    const lines = this.#orderedLines()
    const shown = {
      strikes: this.#strikes,
      lines,
      index,
      hasShares: this.#hasShares,
    }
    this.#strikeTable.show(`At ${instantText(tickMs)}`, shown)
    if (index === null) return `${instantText(tickMs)}: no book is known`
    const quotes = this.#strikes.all
      .slice(0, 8)
      .map(({ label }, place) => `${label} ${valueText(lines[place]?.mids[index])}`)
    return `${instantText(tickMs)}: ${quotes.join(', ')}`
  }
}

export function openDayView(context: ViewContext): View {
  return new DayView(context)
}
