// Lines over time, drawn by uPlot, with hatched gaps behind them. Times are ms since the epoch, shown in UTC.

import uPlot from 'uplot'
import type { Cell } from './aligned-columns.ts'
import { hatch } from './hatch.ts'
import { onNextFrame } from './next-frame.ts'
import { attachGestures, type PlotListener, type PlotWindow } from './plot-gestures.ts'
import { clockText } from './number-text.ts'
import { colour } from './theme.ts'
import type { TimeWindow } from './time-window.ts'

export interface Line {
  readonly label: string
  readonly stroke: () => string
  readonly widthPx?: number
  /** The value holds until the next one. */
  readonly isStepped?: boolean
  /** Values are marks without a line. */
  readonly isPoints?: boolean
  /** The line only scales the axis; `draw` draws its data. */
  readonly isHidden?: boolean
  /** Filled down to the line before it, for stacked bands. */
  readonly isBand?: boolean
  /** Filled down to 0. */
  readonly isFilled?: boolean
  readonly paths?: uPlot.Series.PathBuilder
}

export interface LinePlotOptions {
  readonly host: HTMLElement
  readonly lines: readonly Line[]
  readonly yLabel: string
  readonly yRange: uPlot.Range.Function | readonly [number, number]
  readonly get: () => PlotWindow
  readonly listener: PlotListener
  /** Draws on top of the lines. */
  readonly draw?: (plot: uPlot) => void
}

const NARROW_PX = 480
const X_TICK_PX = 70
/** Axis steps are whole numbers: of cents, degrees, percent or contracts. */
const INCREMENTS = [0, 1, 2, 3, 4, 5, 6].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power))
const POINT_PX = 6

function seriesOf(line: Line, index: number): uPlot.Series {
  const { label, stroke, widthPx = 1.5, isStepped, isPoints, isHidden, isBand, isFilled, paths } = line
  const steps = uPlot.paths.stepped?.({ align: 1 })
  return {
    label,
    stroke,
    width: widthPx,
    spanGaps: false,
    points: isPoints === true ? { show: true, size: 7, fill: stroke } : { show: false },
    ...(isPoints === true || isHidden === true ? { paths: () => null } : {}),
    ...(isStepped === true && steps !== undefined ? { paths: steps } : {}),
    // The lowest band has no line below it.
    ...(isFilled === true || (isBand === true && index === 0) ? { fill: () => faint(stroke()) } : {}),
    ...(paths === undefined ? {} : { paths }),
  }
}

/** An rgb() or #rrggbb colour made transparent, so that the grid stays visible. */
function faint(stroke: string): string {
  return stroke.startsWith('#') ? `${stroke}59` : stroke.replace(')', ', 0.35)')
}

function bandsOf(lines: readonly Line[]): uPlot.Band[] {
  return lines.flatMap(({ isBand, stroke }, index) =>
    isBand === true && index > 0
      ? [{ series: [index + 1, index] as [number, number], fill: () => faint(stroke()) }]
      : [],
  )
}

export class LinePlot {
  readonly #plot: uPlot
  readonly #host: HTMLElement
  readonly #get: () => PlotWindow
  readonly #observer: ResizeObserver
  readonly #redraw: () => void
  #gaps: readonly TimeWindow[] = []
  #cursorMs: number | null = null

  constructor(options: LinePlotOptions) {
    const { host, get, listener } = options
    this.#host = host
    this.#get = get
    this.#plot = new uPlot(this.#uplotOptions(options), [[], ...options.lines.map(() => [])], host)
    attachGestures(this.#plot.over, get, listener)
    this.#redraw = onNextFrame(() => this.#show())
    this.#observer = new ResizeObserver(() => {
      this.#plot.setSize(this.#size())
      this.#placeCursor()
    })
    this.#observer.observe(host)
  }

  /** @param columns one for each line, as long as `times` */
  setData(times: readonly number[], columns: readonly (readonly Cell[])[]): void {
    this.#plot.setData([times, ...columns] as unknown as uPlot.AlignedData)
    this.#placeCursor()
  }

  setGaps(gaps: readonly TimeWindow[]): void {
    this.#gaps = gaps
    this.#redraw()
  }

  /** Shows the window as it is now. */
  showWindow(): void {
    this.#redraw()
  }

  setCursor(ms: number | null): void {
    this.#cursorMs = ms
    this.#placeCursor()
  }

  destroy(): void {
    this.#observer.disconnect()
    this.#plot.destroy()
  }

  #show(): void {
    const { fromMs, toMs } = this.#get().window
    this.#plot.setScale('x', { min: fromMs, max: toMs })
    this.#placeCursor()
  }

  #placeCursor(): void {
    if (this.#cursorMs === null) return
    this.#plot.setCursor({ left: this.#plot.valToPos(this.#cursorMs, 'x'), top: 0 }, false)
  }

  #size(): { width: number; height: number } {
    return { width: Math.max(200, this.#host.clientWidth), height: Math.max(120, this.#host.clientHeight) }
  }

  #uplotOptions({ lines, yLabel, yRange, draw }: LinePlotOptions): uPlot.Options {
    const axis = {
      stroke: () => colour('muted'),
      grid: { stroke: () => colour('line'), width: 1 },
      ticks: { show: false },
    }
    const isNarrow = this.#host.clientWidth < NARROW_PX
    return {
      ...this.#size(),
      ms: 1,
      legend: { show: false },
      padding: [8, 18, 0, 0],
      series: [{}, ...lines.map(seriesOf)],
      bands: bandsOf(lines),
      scales: {
        x: {
          time: true,
          range: () => [this.#get().window.fromMs, this.#get().window.toMs],
        },
        y: { range: typeof yRange === 'function' ? yRange : () => [yRange[0], yRange[1]] },
      },
      tzDate: (ms) => uPlot.tzDate(new Date(ms), 'Etc/UTC'),
      axes: [
        { ...axis, space: X_TICK_PX, size: 28, values: (_, splits) => splits.map((ms) => clockText(ms)) },
        {
          ...axis,
          incrs: INCREMENTS,
          size: isNarrow ? 34 : 44,
          ...(isNarrow ? {} : { label: yLabel, labelSize: 18 }),
        },
      ],
      cursor: {
        y: false,
        drag: { x: false, y: false },
        points: { size: (_, index) => (lines[index - 1]?.isHidden === true ? 0 : POINT_PX) },
      },
      hooks: {
        drawClear: [(plot) => this.#drawGaps(plot)],
        ...(draw === undefined ? {} : { draw: [draw] }),
      },
    }
  }

  #drawGaps(plot: uPlot): void {
    const { left, top, width, height } = plot.bbox
    for (const { fromMs, toMs } of this.#gaps) {
      const from = Math.max(left, plot.valToPos(fromMs, 'x', true))
      const to = Math.min(left + width, plot.valToPos(toMs, 'x', true))
      // A gap must be visible even if it is narrower than a pixel.
      const rectangle = {
        x: from,
        y: top,
        width: to < left || from > left + width ? 0 : Math.max(2, to - from),
        height,
      }
      hatch(plot.ctx, rectangle, colour('hatch'))
    }
  }
}
