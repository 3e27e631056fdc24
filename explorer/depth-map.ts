// The depth map on a canvas: quantities as shades, best bid and ask as lines, time without a book hatched, a line at the
// cursor. Every redraw paints the whole window, which takes a few milliseconds however many rows the day has.

import type { BookHistory } from './book-history.ts'
import { type DepthColumns, emptyRuns, paintDepth, PRICE_ROWS } from './depth-image.ts'
import { element } from './element.ts'
import { hatch } from './hatch.ts'
import { onNextFrame } from './next-frame.ts'
import { clockText } from './number-text.ts'
import { attachGestures, type PlotListener, type PlotWindow } from './plot-gestures.ts'
import { shadeTable } from './quantity-scale.ts'
import { colour } from './theme.ts'
import { axisTicks } from './time-window.ts'
import type { TradeMarks } from './trade-marks.ts'

const MARGIN = { left: 34, right: 8, top: 8, bottom: 24 } as const
const PRICE_LABELS = [10, 20, 30, 40, 50, 60, 70, 80, 90] as const
const TIME_LABEL_PX = 76
/** A higher ratio costs time and shows no more detail. */
const PIXEL_RATIO_MAX = 2
/** Drawn behind a line, so that the line is visible on every shade. */
const HALO = 'rgba(0, 0, 0, 0.75)'
export const BID_COLOUR = '#7fe7ff'
const TRADE_COLOUR = '#ffffff'
export const ASK_COLOUR = '#ff9f6b'

export class DepthMap {
  readonly #host: HTMLElement
  readonly #get: () => PlotWindow
  readonly #trades: TradeMarks
  readonly #canvas = element('canvas', { 'aria-hidden': 'true' })
  readonly #image = new OffscreenCanvas(1, PRICE_ROWS)
  readonly #observer: ResizeObserver
  readonly #redraw = onNextFrame(() => this.#draw())
  #history: BookHistory | null = null
  #cursorMs: number | null = null
  #shades = shadeTable(1)
  #shadedCode = 1

  constructor(host: HTMLElement, get: () => PlotWindow, listener: PlotListener, trades: TradeMarks) {
    this.#host = host
    this.#trades = trades
    this.#get = get
    const area = element('div', { class: 'plot-area' })
    host.append(this.#canvas, area)
    area.style.inset = `${MARGIN.top}px ${MARGIN.right}px ${MARGIN.bottom}px ${MARGIN.left}px`
    attachGestures(area, get, listener)
    this.#observer = new ResizeObserver(this.#redraw)
    this.#observer.observe(host)
  }

  /** Shows a history, which may still be loading. */
  show(history: BookHistory | null): void {
    this.#history = history
    this.#redraw()
  }

  setCursor(ms: number | null): void {
    this.#cursorMs = ms
    this.#redraw()
  }

  destroy(): void {
    this.#observer.disconnect()
  }

  #draw(): void {
    const { clientWidth, clientHeight } = this.#host
    const ratio = Math.min(PIXEL_RATIO_MAX, devicePixelRatio)
    const [width, height] = [Math.round(clientWidth * ratio), Math.round(clientHeight * ratio)]
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      this.#canvas.width = width
      this.#canvas.height = height
    }
    const context = this.#canvas.getContext('2d')
    if (context === null || clientWidth === 0) return
    context.setTransform(ratio, 0, 0, ratio, 0, 0)
    context.clearRect(0, 0, clientWidth, clientHeight)
    const plot = {
      x: MARGIN.left,
      y: MARGIN.top,
      width: clientWidth - MARGIN.left - MARGIN.right,
      height: clientHeight - MARGIN.top - MARGIN.bottom,
    }
    this.#drawAxes(context, plot)
    if (this.#history !== null) this.#drawBooks(context, plot, this.#history, ratio)
    this.#drawTrades(context, plot)
    this.#drawCursor(context, plot)
  }

  #drawBooks(
    context: CanvasRenderingContext2D,
    plot: DOMRectInit,
    history: BookHistory,
    ratio: number,
  ): void {
    const { x = 0, y = 0, width = 0, height = 0 } = plot
    const columns = Math.max(1, Math.round(width * ratio))
    if (this.#shadedCode !== history.largestCode) {
      this.#shadedCode = history.largestCode
      this.#shades = shadeTable(this.#shadedCode)
    }
    const data = new ImageData(columns, PRICE_ROWS)
    const { window } = this.#get()
    const shown = paintDepth(new Uint32Array(data.data.buffer), columns, {
      history,
      window,
      shades: this.#shades,
    })
    if (this.#image.width !== columns) this.#image.width = columns
    this.#image.getContext('2d')?.putImageData(data, 0, 0)
    context.imageSmoothingEnabled = false
    context.drawImage(this.#image, x, y, width, height)
    const columnPx = width / columns
    for (const [first, last] of emptyRuns(shown))
      hatch(
        context,
        { x: x + first * columnPx, y, width: (last - first + 1) * columnPx, height },
        colour('hatch'),
      )
    const place = (price: number): number => y + height * ((PRICE_ROWS - price + 0.5) / PRICE_ROWS)
    const lines = [
      [history.bestBids, BID_COLOUR],
      [history.bestAsks, ASK_COLOUR],
    ] as const
    for (const [prices, stroke] of lines) {
      const path = stepPath(shown, prices, (column, price) => [x + column * columnPx, place(price)])
      for (const [style, lineWidth] of [
        [HALO, 3],
        [stroke, 1.5],
      ] as const) {
        context.strokeStyle = style
        context.lineWidth = lineWidth
        context.stroke(path)
      }
    }
  }

  #drawTrades(context: CanvasRenderingContext2D, plot: Required<DOMRectInit>): void {
    const { x, y, width, height } = plot
    const { window } = this.#get()
    this.#trades.draw({
      context,
      area: { left: x, top: y, width, height },
      ratio: 1,
      outline: HALO,
      window,
      xOf: (ms) => x + (width * (ms - window.fromMs)) / (window.toMs - window.fromMs),
      yOf: (price) => y + height * ((PRICE_ROWS - price + 0.5) / PRICE_ROWS),
      colourOf: () => TRADE_COLOUR,
    })
  }

  #drawAxes(context: CanvasRenderingContext2D, { x = 0, y = 0, width = 0, height = 0 }: DOMRectInit): void {
    const { window } = this.#get()
    context.font = '12px system-ui, sans-serif'
    context.fillStyle = colour('muted')
    context.strokeStyle = colour('line')
    context.lineWidth = 1
    context.textAlign = 'right'
    context.textBaseline = 'middle'
    context.beginPath()
    for (const price of PRICE_LABELS) {
      const at = y + height * ((PRICE_ROWS - price + 0.5) / PRICE_ROWS)
      context.fillText(`${price}¢`, x - 5, at)
      context.moveTo(x, at)
      context.lineTo(x + width, at)
    }
    context.textAlign = 'center'
    context.textBaseline = 'top'
    for (const ms of axisTicks(window, width / TIME_LABEL_PX)) {
      const at = x + (width * (ms - window.fromMs)) / (window.toMs - window.fromMs)
      context.fillText(clockText(ms), Math.min(at, x + width - 14), y + height + 6)
      context.moveTo(at, y)
      context.lineTo(at, y + height)
    }
    context.stroke()
  }

  #drawCursor(context: CanvasRenderingContext2D, { x = 0, y = 0, width = 0, height = 0 }: DOMRectInit): void {
    const { fromMs, toMs } = this.#get().window
    if (this.#cursorMs === null || this.#cursorMs < fromMs || this.#cursorMs >= toMs) return
    const at = x + (width * (this.#cursorMs - fromMs)) / (toMs - fromMs)
    context.strokeStyle = colour('ink')
    context.lineWidth = 1
    context.setLineDash([4, 3])
    context.beginPath()
    context.moveTo(at, y)
    context.lineTo(at, y + height)
    context.stroke()
    context.setLineDash([])
  }
}

/** A stepped line over the columns; a column without the quote interrupts it. */
function stepPath(
  { ticks }: DepthColumns,
  prices: Uint8Array,
  place: (column: number, price: number) => readonly [x: number, y: number],
): Path2D {
  const path = new Path2D()
  let before = 0
  for (const [column, tick] of ticks.entries()) {
    const price = tick === -1 ? 0 : (prices[tick] ?? 0)
    if (price !== before || column === ticks.length - 1) {
      if (before !== 0) path.lineTo(...place(column, before))
      if (price !== 0 && before !== 0) path.lineTo(...place(column, price))
      else if (price !== 0) path.moveTo(...place(column, price))
    }
    before = price
  }
  return path
}
