// Candles of one market over a date: prices and volume.

import uPlot from 'uplot'
import type { Candle } from '../clients/typescript/bookcast.ts'
import type { ApiRequest } from './api-request.ts'
import { CandleBars } from './candle-bars.ts'
import { DataTable } from './data-table.ts'
import { drawCandles } from './draw-candles.ts'
import { element } from './element.ts'
import { LinePlot } from './line-plot.ts'
import { dayBounds } from './lob-requests.ts'
import { indexAt } from './market-lines.ts'
import { onNextFrame } from './next-frame.ts'
import { countText, instantText, valueText } from './number-text.ts'
import { plotFrame } from './plot-frame.ts'
import { shortened } from './strikes.ts'
import { colour } from './theme.ts'
import { TimeView } from './time-view.ts'
import type { View, ViewContext } from './view.ts'
import type { ViewState } from './view-state.ts'

const MINUTES = 5
const SHORTEST_CANDLES = 10
const NOTE =
  'Open, high, low, close in cents over the period of each candle, UTC; only candles with trades. Below: contracts traded.'
const COLUMNS = ['End (UTC)', 'Open', 'High', 'Low', 'Close', 'Volume', 'Open interest']

function candlesRequest({ market, date, candle }: ViewState): ApiRequest<Candle> {
  const interval = candle === '' ? MINUTES : /^\d+$/.test(candle) ? Number(candle) : candle
  return {
    title: 'candles',
    method: 'candles',
    parameters: { market, from: date, to: date, interval, fill: false },
  }
}

class CandleView implements View {
  readonly #context: ViewContext
  readonly #bars = new CandleBars()
  readonly #spanMs: number
  readonly #time: TimeView
  readonly #prices: LinePlot
  readonly #volumes: LinePlot
  readonly #table = new DataTable('Candles')
  readonly #show = onNextFrame(() => this.#draw())

  constructor(context: ViewContext) {
    const { state, host } = context
    this.#context = context
    const heading = `${shortened(state.market, 80)} on ${shortened(state.date, 40)}`
    const { plot, side, below } = plotFrame(host, heading, NOTE)
    const volumes = element('div', { class: 'plot low', role: 'img', 'aria-label': 'Contracts traded' })
    below.append(volumes)
    side.remove()
    const spanMs = 60_000 * (Number(state.candle) || MINUTES)
    this.#spanMs = spanMs
    this.#time = new TimeView({
      context,
      bounds: dayBounds(state.date),
      shortestMs: SHORTEST_CANDLES * spanMs,
      onWindow: () => {
        this.#prices.showWindow()
        this.#volumes.showWindow()
      },
      onCursor: (ms) => this.#showCursor(ms),
    })
    const { get, listener } = this.#time
    const hidden = ['high', 'low'].map((label) => ({ label, stroke: () => colour('ink'), isHidden: true }))
    this.#prices = new LinePlot({
      host: plot,
      lines: hidden,
      yLabel: 'cents',
      yRange: (_, low, high) => [
        Math.max(0, Math.floor(low ?? 0) - 2),
        Math.min(100, Math.ceil(high ?? 100) + 2),
      ],
      get,
      listener,
      draw: (drawn) => drawCandles(drawn, this.#bars, spanMs),
    })
    const bars = uPlot.paths.bars?.({ size: [0.7, 24], align: -1 })
    this.#volumes = new LinePlot({
      host: volumes,
      lines: [
        {
          label: 'volume',
          stroke: () => colour('accent'),
          widthPx: 1,
          isFilled: true,
          ...(bars && { paths: bars }),
        },
      ],
      yLabel: 'contracts',
      yRange: (_, low, high) => [0, Math.max(1, high ?? low ?? 1)],
      get,
      listener,
    })
    below.append(this.#time.bar.root, this.#table.root)
    void this.#load()
  }

  follow(state: ViewState): void {
    this.#time.follow(state)
  }

  close(): void {
    this.#prices.destroy()
    this.#volumes.destroy()
  }

  async #load(): Promise<void> {
    const request = candlesRequest(this.#context.state)
    await this.#context.panel.begin([request]).read(request, (rows) => {
      this.#bars.add(rows)
      this.#show()
    })
    this.#show()
  }

  #draw(): void {
    if (this.#context.signal.aborted) return
    const { times, highs, lows, volumes } = this.#bars
    this.#prices.setData(times, [highs, lows])
    this.#volumes.setData(times, [volumes])
    this.#table.setRows(COLUMNS, { count: times.length, cellsOf: (index) => this.#cells(index) })
    this.#time.bar.setTicks({
      count: times.length,
      timeOf: (index) => times[index] ?? 0,
      indexAt: (ms) => this.#indexAt(ms),
    })
    this.#time.showCursor(times.at(-1) ?? dayBounds(this.#context.state.date).fromMs)
  }

  /** The candle whose period contains an instant, or else the last one before it. */
  #indexAt(ms: number): number {
    return indexAt(this.#bars.times, ms + this.#spanMs - 1)
  }

  #cells(index: number): string[] {
    const { times, opens, highs, lows, closes, volumes, openInterests } = this.#bars
    const prices = [opens, highs, lows, closes].map((column) => valueText(column[index]))
    const counts = [volumes, openInterests].map((column) => countText(column[index] ?? 0))
    return [instantText(times[index] ?? 0), ...prices, ...counts]
  }

  #showCursor(ms: number): string {
    const { times } = this.#bars
    if (times.length === 0) return ''
    const index = this.#indexAt(ms)
    this.#prices.setCursor(times[index] ?? ms)
    this.#volumes.setCursor(times[index] ?? ms)
    this.#table.setCurrent(index)
    const [end, open, high, low, close, volume] = this.#cells(index)
    return `${end}: open ${open}, high ${high}, low ${low}, close ${close}, volume ${volume}`
  }
}

export function openCandleView(context: ViewContext): View {
  return new CandleView(context)
}
