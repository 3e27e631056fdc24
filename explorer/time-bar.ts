// Keyboard control of a plot: a slider that steps from tick to tick, and buttons that zoom and pan the window.

import { button, element } from './element.ts'
import type { PlotListener, PlotWindow } from './plot-gestures.ts'
import { panned, zoomed } from './time-window.ts'

/** The instants at which the cursor can be. */
export interface Ticks {
  readonly count: number
  readonly timeOf: (index: number) => number
  readonly indexAt: (ms: number) => number
}

const NO_TICKS: Ticks = { count: 0, timeOf: () => 0, indexAt: () => 0 }

export class TimeBar {
  readonly root: HTMLElement
  readonly #slider: HTMLInputElement
  readonly #readout = element('output', { class: 'readout' })
  readonly #get: () => PlotWindow
  readonly #listener: PlotListener
  #ticks = NO_TICKS
  /** The slider cannot tell it while rows are still arriving. */
  #cursorMs: number | null = null

  constructor(get: () => PlotWindow, listener: PlotListener) {
    this.#get = get
    this.#listener = listener
    this.#slider = element('input', { type: 'range', min: 0, max: 0, step: 1, 'aria-label': 'Time' })
    this.#slider.addEventListener('input', () =>
      listener.onCursor(this.#ticks.timeOf(Number(this.#slider.value))),
    )
    this.#slider.addEventListener('keydown', (event) => this.#onKey(event))
    this.root = element(
      'div',
      { class: 'time-bar' },
      this.#slider,
      element(
        'div',
        { class: 'buttons', role: 'group', 'aria-label': 'Window' },
        button('◀', () => this.#pan(-0.5), { 'aria-label': 'Earlier', title: 'Earlier (Shift+←)' }),
        button('−', () => this.#zoom(2), { 'aria-label': 'Zoom out', title: 'Zoom out (−)' }),
        button('+', () => this.#zoom(0.5), { 'aria-label': 'Zoom in', title: 'Zoom in (+)' }),
        button('▶', () => this.#pan(0.5), { 'aria-label': 'Later', title: 'Later (Shift+→)' }),
        button('All', () => listener.onWindow(null), { title: 'Show everything (0)' }),
      ),
      this.#readout,
    )
  }

  setTicks(ticks: Ticks): void {
    this.#ticks = ticks
    this.#slider.max = String(Math.max(0, ticks.count - 1))
    this.#slider.disabled = ticks.count === 0
  }

  /** Where the cursor is shown; null until there is one. */
  get cursorMs(): number | null {
    return this.#cursorMs
  }

  /** @param text the values at the instant, also for screen readers */
  setCursor(ms: number, text: string): void {
    this.#cursorMs = ms
    this.#slider.value = String(this.#ticks.indexAt(ms))
    this.#slider.setAttribute('aria-valuetext', text)
    this.#readout.textContent = text
  }

  #onKey(event: KeyboardEvent): void {
    const isShifted = event.shiftKey
    if (event.key === '+' || event.key === '=') this.#zoom(0.5)
    else if (event.key === '-') this.#zoom(2)
    else if (event.key === '0') this.#listener.onWindow(null)
    else if (isShifted && event.key === 'ArrowLeft') this.#pan(-0.5)
    else if (isShifted && event.key === 'ArrowRight') this.#pan(0.5)
    else return
    event.preventDefault()
  }

  #zoom(factor: number): void {
    const { window, bounds, shortestMs } = this.#get()
    const cursor = this.#cursorMs
    const isInside = cursor !== null && cursor >= window.fromMs && cursor <= window.toMs
    const around = isInside ? cursor : (window.fromMs + window.toMs) / 2
    this.#listener.onWindow(zoomed(window, factor, around, { bounds, shortestMs }))
  }

  #pan(share: number): void {
    const { window, bounds } = this.#get()
    this.#listener.onWindow(panned(window, share, bounds))
  }
}
