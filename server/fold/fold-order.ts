// An order to fold dates and its outcome, as plain data for a thread.

import type { LobSource } from '../../shared/lob-sources.ts'
import type { WrittenLobFile } from '../lake/lob-publication.ts'
import { FoldReport } from './fold-report.ts'
import type { MarketDay } from './fold-report.ts'
import { foldRawDates } from './fold-raw-dates.ts'
import type { DateRule, FoldRawOptions } from './fold-raw-dates.ts'
import { FoldTally } from './fold-tally.ts'

export interface FoldOrder {
  readonly lake: string
  readonly source: LobSource
  readonly dates: readonly string[]
  readonly rules?: ReadonlyMap<string, DateRule> | undefined
  readonly isLocked?: boolean | undefined
  readonly isDryRun?: boolean | undefined
  readonly keepsNext?: boolean | undefined
  readonly bounds?: FoldRawOptions['bounds']
}

/** The counters of a fold, without its methods. */
export type FoldCounts = Omit<FoldTally, 'countGap' | 'countSkipped'>

export interface FoldOutcome {
  readonly files: readonly WrittenLobFile[]
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

/** Folds in the calling thread. `decoded` has segments that the caller has just read. */
export const foldHere = async (
  order: FoldOrder & Pick<FoldRawOptions, 'decoded'>,
  listeners: FoldListeners,
  signal: AbortSignal,
): Promise<FoldOutcome> => {
  const tally = new FoldTally()
  const report = new FoldReport()
  let events = 0
  const files = await foldRawDates({
    ...order,
    signal,
    tally,
    onKnowledge: report.onKnowledge,
    onDate: report.onDate,
    onSeries: (series) => {
      report.onSeries(series)
      events = series.events
    },
    onSegment: (date, _segment, count) => listeners.onSegment?.(date, count),
    onRows: (series, date, rows) => listeners.onWrite?.({ series, date, rows, events }),
    onWait: (owner) => listeners.onWait?.(owner),
  })
  const { days } = report
  countLosses(days, tally)
  return { files, tally, days }
}

function countLosses(days: readonly MarketDay[], tally: FoldTally): void {
  for (const { losses } of days) {
    for (const [cause, count] of losses) {
      if (cause === 'level below zero') tally.negativeLevels += count
      // The fold itself counts unsubscribed markets.
      else if (cause !== 'no longer followed') tally.countGap(cause, count)
    }
  }
}
