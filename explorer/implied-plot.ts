// The implied distribution over time: the strikes' shares as stacked bands, the coldest at the bottom.

import { listedStrikes } from './catalogue.ts'
import { DataTable } from './data-table.ts'
import { gapSpans } from './gap-spans.ts'
import { EventStrikes, stacked } from './implied-distribution.ts'
import { LinePlot } from './line-plot.ts'
import { intervalOf } from './lob-requests.ts'
import { type MarketLine, MarketLines, tickAt } from './market-lines.ts'
import { instantText } from './number-text.ts'
import type { PlotFrame } from './plot-frame.ts'
import { StrikeTable } from './strike-table.ts'
import { strikeColour } from './theme.ts'
import type { TimeView } from './time-view.ts'
import type { ViewContext } from './view.ts'
import { QUOTES_INTERVAL } from './weather-requests.ts'

export class ImpliedPlot {
  readonly lines = new MarketLines()
  readonly #frame: PlotFrame
  readonly #time: TimeView
  readonly #table = new DataTable('Implied distribution, percent')
  readonly #strikeTable: StrikeTable
  readonly #tickMs: number
  #plot: LinePlot | undefined
  readonly #listed: readonly string[]
  #strikes = new EventStrikes([], [])
  /** One row for each time, one share for each strike. */
  #shares: readonly (readonly (number | null)[])[] = []

  constructor(frame: PlotFrame, time: TimeView, context: ViewContext) {
    this.#frame = frame
    this.#time = time
    this.#listed = listedStrikes(context.markets, context.state.event)
    this.#strikeTable = new StrikeTable((market) => context.open({ view: 'book', market }))
    frame.side.append(this.#strikeTable.root)
    frame.below.append(this.#table.root)
    this.#tickMs = 1000 * (Number(intervalOf(context.state, QUOTES_INTERVAL)) || QUOTES_INTERVAL)
  }

  /** @param isWhole whether all rows have arrived; until then, time after the last row is not hatched as a gap */
  draw(isWhole: boolean): void {
    const { times } = this.lines
    this.#updateStrikes()
    const ordered = this.#ordered()
    this.#shares = times.map((_, index) =>
      this.#strikes.sharesOf(ordered.map((line) => line?.mids[index] ?? null)),
    )
    const edges = this.#shares.map(stacked)
    this.#plot?.setData(
      times,
      this.#strikes.all.map((_, place) => edges.map((row) => row[place] ?? null)),
    )
    const isKnown = (index: number): boolean => (this.#shares[index]?.[0] ?? null) !== null
    const { bounds } = this.#time.get()
    const loadedToMs = isWhole
      ? bounds.toMs
      : Math.min(bounds.toMs, (times.at(-1) ?? -Infinity) + this.#tickMs)
    this.#plot?.setGaps(gapSpans(times, isKnown, this.#tickMs, { ...bounds, toMs: loadedToMs }))
    this.#table.setRows(['Time (UTC)', ...this.#strikes.all.map(({ label }) => label)], {
      count: times.length,
      cellsOf: (index) => [
        instantText(times[index] ?? 0),
        ...(this.#shares[index] ?? []).map((share) => (share === null ? '–' : share.toFixed(1))),
      ],
    })
  }

  /** Shows an instant and returns a text with the likeliest strike at it. */
  showCursor(ms: number): string {
    const { times } = this.lines
    if (times.length === 0) return ''
    const index = tickAt(times, ms, this.#tickMs)
    this.#plot?.setCursor(ms)
    this.#table.setCurrent(index)
    const lines = this.#ordered()
    const place = { strikes: this.#strikes, lines, index, hasShares: true }
    this.#strikeTable.show(`At ${instantText(index === null ? ms : (times[index] ?? ms))}`, place)
    if (index === null) return 'no book is known'
    const shares = this.#shares[index] ?? []
    const best = shares.reduce<number>(
      (found, share, at) => ((share ?? 0) > (shares[found] ?? 0) ? at : found),
      0,
    )
    const share = shares[best]
    return share === null || share === undefined
      ? this.#strikes.missingText(lines.map((line) => line?.mids[index] ?? null)) || 'no distribution'
      : `likeliest ${this.#strikes.all[best]?.label} with ${share.toFixed(0)} %`
  }

  showWindow(): void {
    this.#plot?.showWindow()
  }

  destroy(): void {
    this.#plot?.destroy()
  }

  #ordered(): (MarketLine | undefined)[] {
    const { lines } = this.lines
    return this.#strikes.all.map(({ market }) => lines.find((line) => line.market === market))
  }

  #updateStrikes(): void {
    const strikes = new EventStrikes(
      this.#listed,
      this.lines.lines.map(({ market }) => market),
    )
    const isSame = strikes.all.length === this.#strikes.all.length
    this.#strikes = strikes
    if (!isSame || this.#plot === undefined) this.#buildPlot()
  }

  #buildPlot(): void {
    this.#plot?.destroy()
    const count = this.#strikes.all.length
    this.#plot = new LinePlot({
      host: this.#frame.plot,
      lines: this.#strikes.all.map(({ label }, index) => ({
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
