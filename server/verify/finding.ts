// The findings of a verification, and its input.

import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'

export interface VerifyContext {
  readonly postgres: Postgres
  /** The lake with rows that have left the store, or null if none is given. */
  readonly lake: string | null
  readonly span: TimeWindow
  readonly nowMs: number
  readonly signal: AbortSignal
}

/** Missing data. */
export interface Finding {
  /** A market or a station. */
  readonly of: string
  /** For users: the time, and how much of the expected data there is. */
  readonly text: string
  /** The window to request again; null if it was never requested, so that none needs to be reopened. */
  readonly window: TimeWindow | null
}

/** A series' candles or a station's observations. */
export interface ScopeReport {
  readonly scope: string
  /** Counted days of its markets, or of the station. */
  readonly dayCount: number
  readonly findings: readonly Finding[]
}
