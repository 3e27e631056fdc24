// An order to fold dates and its outcome, as plain data for a thread.

import type { LobSource } from '../../shared/lob-sources.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import type { WrittenTrades } from '../trades/trades-fold.ts'
import type { MarketDay } from './fold-report.ts'
import type { FoldTally } from './fold-tally.ts'

export interface FoldOrder {
  readonly lake: string
  readonly source: LobSource
  readonly dates: readonly string[]
  /** Rules for single dates. Dates without one are folded as their manifests say. */
  readonly rules?: ReadonlyMap<string, DateRule> | undefined
  /** The caller holds the lock of the source (`withLock`). */
  readonly isLocked?: boolean | undefined
  /** Publish nothing; the outcome lists what would change. */
  readonly isDryRun?: boolean | undefined
  /** The date after `dates` is only read, to see which chains continue in it, but not folded: a recorder publishes it. */
  readonly keepsNext?: boolean | undefined
  /** Smaller bounds than shared/limits.ts, for tests. */
  readonly bounds?:
    | { readonly spillBytes?: number; readonly passRows?: number; readonly groupRows?: number }
    | undefined
}

/** How a date is folded. */
export interface DateRule {
  /** Names of segments that the caller has added. */
  readonly added: readonly string[]
  /** Derive the date from `added` and the rows that REST gave, and set this epoch. Earlier recordings no longer count. */
  readonly replacedBy?: number | undefined
  /** Names of segments to leave out. */
  readonly omitted?: readonly string[] | undefined
  /** Series that the result must have files of. Otherwise a file would stay whose messages are gone. */
  readonly requiredSeries?: readonly string[] | undefined
}

/** The counters of a fold, without its methods. */
export type FoldCounts = Omit<FoldTally, 'countGap' | 'countSkipped'>

export interface FoldOutcome {
  readonly files: readonly WrittenLobFile[]
  readonly trades: readonly WrittenTrades[]
  readonly tally: FoldCounts
  /** What is known of each market in the dates that were folded. */
  readonly days: readonly MarketDay[]
}

/** Rows of a series' file that are written so far, out of about `events`. */
export interface FoldWriting {
  readonly series: string
  readonly date: string
  readonly rows: number
  readonly events: number
}

export interface FoldListeners {
  /** A segment of a date was read; the date has `count` of them. */
  onSegment?(date: string, count: number): void
  onWrite?(writing: FoldWriting): void
  /** Another process writes to the lake; this fold waits for it. */
  onWait?(owner: string): void
}

/** Carries out an order. Rejects with an error for the user, or with the signal's reason. */
export type Folding = (
  order: FoldOrder,
  listeners: FoldListeners,
  signal: AbortSignal,
) => Promise<FoldOutcome>
