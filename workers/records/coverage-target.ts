// What the reading of coverage gives, and what takes it.

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
  /** Undefined where there is no file. */
  readonly part: LakePart | undefined
}

export interface MarketDate {
  /** Null: all markets of the series, on a date without a file. */
  readonly id: string | null
  readonly day: RecordedDate
  /** What the file says of the market. */
  readonly hours: MarketHours | undefined
  readonly stretches: readonly BookStretch[]
}

/** Takes markets and dates in the order of dates, and makes rows of them. */
export interface CoverageTarget {
  /** False when no more rows are wanted. */
  add(entry: MarketDate): boolean
  batches(): Iterable<RecordBatch>
  readonly rows: number
  readonly hasMore: boolean
}
