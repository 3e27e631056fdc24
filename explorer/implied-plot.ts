// The implied distribution over time: the strikes' shares as bands that lie on one another, coldest at the bottom.

import { DataTable } from './data-table.ts'
import { gapSpans } from './gap-spans.ts'
import { impliedDistribution, stacked } from './implied-distribution.ts'
import { LinePlot } from './line-plot.ts'
import { intervalOf } from './lob-requests.ts'
import { indexAt, type MarketLine, MarketLines } from './market-lines.ts'
import { instantText } from './number-text.ts'
import type { PlotFrame } from './plot-frame.ts'
import { StrikeTable } from './strike-table.ts'
import { orderedStrikes, type Strike } from './strikes.ts'
import { strikeColour } from './theme.ts'
import type { TimeView } from './time-view.ts'
import type { ViewContext } from './view.ts'
import { QUOTES_INTERVAL } from './weather-requests.ts'

export class ImpliedPlot {
  readonly lines = new MarketLines()
  readonly #frame: PlotFrame
  readonly #time: TimeView
  readonly #context: ViewContext
  readonly #table = new DataTable('Implied distribution, percent')
  readonly #strikeTable: StrikeTable
  #plot: LinePlot | undefined
  #strikes: readonly Strike[] = []
  /** One row for each time, one share for each strike. */
  #shares: readonly (readonly (number | null)[])[] = []

  constructor(frame: PlotFrame, time: TimeView, context: ViewContext) {
    this.#frame = frame
    this.#time = time
    this.#context = context
    this.#strikeTable = new StrikeTable((market) => context.open({ view: 'book', market }))
    frame.side.append(this.#strikeTable.root)
    frame.below.append(this.#table.root)
  }

  draw(): void {
    const { times, lines } = this.lines
    if (lines.length !== this.#strikes.length || this.#plot === undefined) this.#buildPlot()
    const ordered = this.#ordered()
    this.#shares = times.map((_, index) =>
      impliedDistribution(ordered.map((line) => line?.mids[index] ?? null)),
    )
    const edges = this.#shares.map(stacked)
    this.#plot?.setData(
      times,
      this.#strikes.map((_, place) => edges.map((row) => row[place] ?? null)),
    )
    const tickMs = 1000 * (Number(intervalOf(this.#context.state, QUOTES_INTERVAL)) || QUOTES_INTERVAL)
    const isKnown = (index: number): boolean => (this.#shares[index]?.[0] ?? null) !== null
    this.#plot?.setGaps(gapSpans(times, isKnown, tickMs, this.#time.get().bounds))
    this.#table.setRows(['Time (UTC)', ...this.#strikes.map(({ label }) => label)], {
      count: times.length,
      cellsOf: (index) => [
        instantText(times[index] ?? 0),
        ...(this.#shares[index] ?? []).map((share) => (share === null ? '–' : share.toFixed(1))),
      ],
    })
  }

  /** Shows an instant and says what is likeliest there. */
  showCursor(ms: number): string {
    const { times } = this.lines
    if (times.length === 0) return ''
    const index = indexAt(times, ms)
    this.#plot?.setCursor(ms)
    this.#table.setCurrent(index)
    const place = { strikes: this.#strikes, lines: this.#ordered(), index, hasShares: true }
    this.#strikeTable.show(`At ${instantText(times[index] ?? ms)}`, place)
    const shares = this.#shares[index] ?? []
    const best = shares.reduce<number>(
      (found, share, at) => ((share ?? 0) > (shares[found] ?? 0) ? at : found),
      0,
    )
    const share = shares[best]
    return share === null || share === undefined
      ? 'no distribution'
      : `likeliest ${this.#strikes[best]?.label} with ${share.toFixed(0)} %`
  }

  showWindow(): void {
    this.#plot?.showWindow()
  }

  destroy(): void {
    this.#plot?.destroy()
  }

  #ordered(): (MarketLine | undefined)[] {
    const { lines } = this.lines
    return this.#strikes.map(({ market }) => lines.find((line) => line.market === market))
  }

  #buildPlot(): void {
    this.#plot?.destroy()
    this.#strikes = orderedStrikes(this.lines.lines.map(({ market }) => market))
    const count = this.#strikes.length
    this.#plot = new LinePlot({
      host: this.#frame.plot,
      lines: this.#strikes.map(({ label }, index) => ({
        label,
        stroke: () => strikeColour(index, count),
        widthPx: 1,
        isStepped: true,
        isBand: true,
      })),
      yLabel: 'percent',
      yRange: [0, 100],
      get: this.#time.get,
      listener: this.#time.listener,
    })
  }
}
