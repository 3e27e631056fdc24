// The types between the reader of coverage (coverage.ts) and the makers of its rows (coverage-rows.ts, gap-rows.ts).

import type { MarketHours } from '../../shared/lob-hours.ts'
import type { BookStretch } from '../lob/book-stretches.ts'
import type { LakePart } from './lake-partitions.ts'
import type { RecordBatch } from './record-batch.ts'

export interface RecordedDate {
  readonly date: string
  /** Midnight, ms since the epoch. */
  readonly startMs: number
  /** Midnight, ns since the epoch. */
  readonly startNs: bigint
  readonly isOpen: boolean
  /** Undefined if the date has no file. */
  readonly part: LakePart | undefined
}

export interface MarketDate {
  /** Null: all markets of the series, on a date without a file. */
  readonly id: string | null
  readonly day: RecordedDate
  /** The market's figures in the file. */
  readonly hours: MarketHours | undefined
  readonly stretches: readonly BookStretch[]
}

/** Makes rows of markets and dates, in the order of dates. */
export interface CoverageTarget {
  /** False when no more rows are wanted. */
  add(entry: MarketDate): boolean
  batches(): Iterable<RecordBatch>
  readonly rows: number
  readonly hasMore: boolean
}
