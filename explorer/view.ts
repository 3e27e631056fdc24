// The interface of a view, and the context that the page passes to it.

import type { Catalogue, ListedMarket } from './catalogue.ts'
import type { RequestPanel } from './request-panel.ts'
import type { Session } from './session.ts'
import type { TimeWindow } from './time-window.ts'
import type { ViewState } from './view-state.ts'

export interface ViewContext {
  readonly host: HTMLElement
  readonly state: ViewState
  readonly markets: readonly ListedMarket[]
  readonly catalogue: Catalogue
  readonly session: Session
  readonly panel: RequestPanel
  /** Writes the window and the cursor into the address; the view stays. */
  readonly note: (patch: Partial<ViewState>) => void
  /** Opens another view or other data. */
  readonly open: (patch: Partial<ViewState>) => void
  /** Aborted when the view is left. */
  readonly signal: AbortSignal
}

export interface View {
  /** Shows the window and the cursor of another state of the same data. */
  follow(state: ViewState): void
  close(): void
}

export type OpenView = (context: ViewContext) => View

/** The window of a state; null for everything. */
export function windowOf({ from, to }: ViewState): TimeWindow | null {
  return from === null || to === null ? null : { fromMs: from, toMs: to }
}
