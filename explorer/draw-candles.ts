// Draws candles into a plot: a line from low to high and a body from open to close. The body is hollow if the price rose, so
// that the direction is readable without colour.

import type uPlot from 'uplot'
import type { CandleBars } from './candle-bars.ts'
import { colour } from './theme.ts'

const BODY_SHARE = 0.7
const BODY_PX_MAX = 24

/** @param spanMs length of a candle; its time is its end */
export function drawCandles(plot: uPlot, bars: CandleBars, spanMs: number): void {
  const { ctx: context, bbox } = plot
  const [rise, fall, surface] = [colour('rise'), colour('fall'), colour('surface')]
  const spanPx = Math.abs(plot.valToPos(spanMs, 'x', true) - plot.valToPos(0, 'x', true))
  const width = 2 * Math.round(Math.max(1, Math.min(BODY_PX_MAX * devicePixelRatio, spanPx * BODY_SHARE)) / 2)
  context.save()
  context.beginPath()
  context.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  context.clip()
  context.lineWidth = Math.max(1, devicePixelRatio)
  for (const [index, ms] of bars.times.entries()) {
    const x = crisp(plot.valToPos(ms - spanMs / 2, 'x', true))
    if (x < bbox.left - width || x > bbox.left + bbox.width + width) continue
    const place = (prices: readonly number[]): number => crisp(plot.valToPos(prices[index] ?? 0, 'y', true))
    const [open, high, low, close] = [
      place(bars.opens),
      place(bars.highs),
      place(bars.lows),
      place(bars.closes),
    ]
    const hasRisen = close <= open
    context.strokeStyle = hasRisen ? rise : fall
    context.beginPath()
    context.moveTo(x, high)
    context.lineTo(x, low)
    context.stroke()
    const top = Math.min(open, close)
    const height = Math.max(context.lineWidth, Math.abs(open - close))
    context.fillStyle = hasRisen && height > context.lineWidth ? surface : context.strokeStyle
    context.fillRect(x - width / 2, top, width, height)
    context.strokeRect(x - width / 2, top, width, height)
  }
  context.restore()
}

/** The middle of a pixel, so that a line one pixel wide covers exactly one pixel. */
function crisp(place: number): number {
  return Math.floor(place) + 0.5
}
