// The depth map as pixels: one column for each column of the screen, one row for each price from 99 cents down to 1. A
// column shows the exact book at one instant; nothing is averaged.

import { type BookHistory, PRICES } from './book-history.ts'
import type { TimeWindow } from './time-window.ts'

export const PRICE_ROWS = PRICES - 1

/** What the lines over the shades are drawn from: one value for each column. */
export interface DepthColumns {
  /** The tick whose book a column shows; -1 if the book is unknown. */
  readonly ticks: Int32Array
}

/** The instant at the left edge of a column. */
export function columnTime({ fromMs, toMs }: TimeWindow, column: number, columns: number): number {
  return fromMs + ((toMs - fromMs) * column) / columns
}

/**
 * Fills `pixels`, `columns` by PRICE_ROWS, with the shades of a window.
 * @param shades colours by quantity code
 */
export function paintDepth(
  pixels: Uint32Array,
  columns: number,
  { history, window, shades }: { history: BookHistory; window: TimeWindow; shades: Uint32Array },
): DepthColumns {
  const ticks = new Int32Array(columns).fill(-1)
  pixels.fill(0)
  for (let column = 0; column < columns; column += 1) {
    const ms = columnTime(window, column, columns)
    if (ms < history.fromMs || ms >= history.toMs) continue
    const tick = history.tickAt(ms)
    // A gap must be visible even if it is narrower than a column.
    if (hasGap(history, tick, columnTime(window, column + 1, columns))) continue
    ticks[column] = tick
    const place = history.codesAt(tick)
    if (place === undefined) continue
    const { codes, offset } = place
    for (let price = 1; price < PRICES; price += 1) {
      const code = codes[offset + price] ?? 0
      if (code !== 0) pixels[(PRICES - 1 - price) * columns + column] = shades[code] ?? 0
    }
  }
  return { ticks }
}

/** Whether any tick of a column has no book. The column begins at tick `first` and ends at `endMs`. */
function hasGap(history: BookHistory, first: number, endMs: number): boolean {
  if (!history.isKnown(first)) return true
  for (let tick = first + 1; tick < history.endTick && history.timeOf(tick) < endMs; tick += 1)
    if (!history.isKnown(tick)) return true
  return false
}

/** Runs of columns without a book, each as its first and last column. */
export function emptyRuns({ ticks }: DepthColumns): [first: number, last: number][] {
  const runs: [number, number][] = []
  for (const [column, tick] of ticks.entries()) {
    if (tick !== -1) continue
    const run = runs.at(-1)
    if (run !== undefined && run[1] === column - 1) run[1] = column
    else runs.push([column, column])
  }
  return runs
}
