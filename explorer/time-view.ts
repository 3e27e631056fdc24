// The state that all views over time share: the window and the cursor, and the callbacks for when one of them moves.

import type { PlotListener, PlotWindow } from './plot-gestures.ts'
import { TimeBar } from './time-bar.ts'
import type { TimeWindow } from './time-window.ts'
import { type ViewContext, windowOf } from './view.ts'
import type { ViewState } from './view-state.ts'

export interface TimeViewOptions {
  readonly context: ViewContext
  readonly bounds: TimeWindow
  readonly shortestMs: number
  /** Redraws the plot for the current window. */
  readonly onWindow: (window: TimeWindow | null) => void
  /** Shows an instant and returns a text with its values. */
  readonly onCursor: (ms: number) => string
}

export class TimeView {
  readonly bar: TimeBar
  readonly listener: PlotListener
  readonly #options: TimeViewOptions
  #window: TimeWindow | null
  /** Null until the user has chosen a cursor or a window. */
  #cursorMs: number | null

  constructor(options: TimeViewOptions) {
    this.#options = options
    this.#window = windowOf(options.context.state)
    this.#cursorMs = options.context.state.at
    this.listener = {
      onCursor: (ms) => this.#moveCursor(ms),
      onWindow: (window) => this.#moveWindow(window),
    }
    this.bar = new TimeBar(this.get, this.listener)
  }

  readonly get = (): PlotWindow => {
    const { bounds, shortestMs } = this.#options
    return { window: this.#window ?? bounds, bounds, shortestMs }
  }

  /** Null: everything is shown. */
  get window(): TimeWindow | null {
    return this.#window
  }

  /** Shows the cursor again; if it has no place yet, in the window as near to `suggestedMs` as possible. */
  showCursor(suggestedMs: number): void {
    const { fromMs, toMs } = this.get().window
    const ms = this.#cursorMs ?? Math.max(fromMs, Math.min(suggestedMs, toMs))
    this.bar.setCursor(ms, this.#options.onCursor(ms))
  }

  follow(state: ViewState): void {
    this.#window = windowOf(state)
    this.#options.onWindow(this.#window)
    if (state.at === null) return
    this.#cursorMs = state.at
    this.showCursor(state.at)
  }

  #moveCursor(ms: number): void {
    this.#cursorMs = ms
    this.showCursor(ms)
    this.#options.context.note({ at: Math.round(ms / 1000) * 1000 })
  }

  #moveWindow(window: TimeWindow | null): void {
    const { bounds } = this.#options
    const isAll = window === null || (window.fromMs <= bounds.fromMs && window.toMs >= bounds.toMs)
    this.#window = isAll ? null : window
    // Rows that arrive for the new window do not move the cursor.
    this.#cursorMs ??= this.bar.cursorMs
    this.#options.onWindow(this.#window)
    this.#options.context.note(
      this.#window === null
        ? { from: null, to: null }
        : { from: Math.round(this.#window.fromMs), to: Math.round(this.#window.toMs) },
    )
  }
}
