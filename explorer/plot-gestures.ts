// Pointer gestures in a plot: moving the pointer moves the cursor, dragging zooms to a range, dragging with Shift pans. The
// wheel zooms with Ctrl and pans with Shift, a double click shows everything. For the keyboard, see time-bar.ts.

import { element } from './element.ts'
import { panned, type TimeWindow, zoomed } from './time-window.ts'

export interface PlotWindow {
  /** The time that is shown. */
  readonly window: TimeWindow
  /** The time for which there is data. */
  readonly bounds: TimeWindow
  readonly shortestMs: number
}

export interface PlotListener {
  onCursor(ms: number): void
  /** @param window null for everything */
  onWindow(window: TimeWindow | null): void
}

const CLICK_PX = 4
const WHEEL_PX_PER_DOUBLING = 240

/** @param area the part of a plot that is as wide as its window; it is a positioned element, which contains the selection mark */
export function attachGestures(area: HTMLElement, get: () => PlotWindow, listener: PlotListener): void {
  const mark = element('div', { class: 'plot-selection', hidden: true })
  area.append(mark)
  let pressed: { readonly x: number; readonly isPan: boolean; window: TimeWindow } | undefined

  const shareAt = (clientX: number): number => {
    const { left, width } = area.getBoundingClientRect()
    return Math.min(1, Math.max(0, (clientX - left) / width))
  }
  const timeAt = (clientX: number, { fromMs, toMs }: TimeWindow): number =>
    fromMs + shareAt(clientX) * (toMs - fromMs)

  area.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return
    pressed = { x: event.clientX, isPan: event.shiftKey, window: get().window }
    area.setPointerCapture(event.pointerId)
  })
  area.addEventListener('pointermove', (event) => {
    const { window, bounds } = get()
    if (pressed?.isPan === true) {
      const { width } = area.getBoundingClientRect()
      listener.onWindow(panned(pressed.window, (pressed.x - event.clientX) / width, bounds))
      return
    }
    listener.onCursor(timeAt(event.clientX, window))
    const width = pressed === undefined ? 0 : Math.abs(event.clientX - pressed.x)
    mark.hidden = width < CLICK_PX
    if (pressed === undefined || mark.hidden) return
    const left = Math.min(pressed.x, event.clientX) - area.getBoundingClientRect().left
    mark.style.left = `${Math.max(0, left)}px`
    mark.style.width = `${width}px`
  })
  area.addEventListener('pointerup', (event) => {
    const from = pressed
    pressed = undefined
    mark.hidden = true
    if (from === undefined || from.isPan || Math.abs(event.clientX - from.x) < CLICK_PX) return
    const { window, bounds, shortestMs } = get()
    const times = [from.x, event.clientX].map((x) => timeAt(x, window)).toSorted((one, other) => one - other)
    const [fromMs = window.fromMs, toMs = window.toMs] = times
    const span = { fromMs, toMs: Math.max(toMs, fromMs + 1) }
    listener.onWindow(
      zoomed(span, 1, (fromMs + toMs) / 2, {
        bounds,
        shortestMs: Math.min(shortestMs, bounds.toMs - bounds.fromMs),
      }),
    )
  })
  area.addEventListener('pointercancel', () => {
    pressed = undefined
    mark.hidden = true
  })
  area.addEventListener('dblclick', () => listener.onWindow(null))
  area.addEventListener(
    'wheel',
    (event) => {
      const { window, bounds, shortestMs } = get()
      const sideways = event.shiftKey ? event.deltaY + event.deltaX : event.deltaX
      if (event.ctrlKey) {
        const factor = 2 ** (event.deltaY / WHEEL_PX_PER_DOUBLING)
        listener.onWindow(zoomed(window, factor, timeAt(event.clientX, window), { bounds, shortestMs }))
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY))
        listener.onWindow(panned(window, sideways / area.clientWidth, bounds))
      else return
      event.preventDefault()
    },
    { passive: false },
  )
}
