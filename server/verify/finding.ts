// What a verification finds, and what it needs to look at.

import type { TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'

export interface VerifyContext {
  readonly postgres: Postgres
  /** The lake that rows of the store have moved to, or null where none is given. */
  readonly lake: string | null
  readonly span: TimeWindow
  readonly nowMs: number
  readonly signal: AbortSignal
}

/** Something that is missing. */
export interface Finding {
  /** A market or a station. */
  readonly of: string
  /** For people: when, and what there is of what there should be. */
  readonly text: string
  /** What has to be asked for again; null where it has never been asked for, so that nothing need be opened. */
  readonly window: TimeWindow | null
}

/** A series' candles or a station's observations. */
export interface ScopeReport {
  readonly scope: string
  /** Days of its markets, or of the station, that were counted. */
  readonly dayCount: number
  readonly findings: readonly Finding[]
}
