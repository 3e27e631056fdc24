// What the reading of coverage gives, and what takes it.

import type { BookSegment } from '../lob/book-segments.ts'
import type { FileCoverage } from '../lob/file-coverage.ts'

/** A market on a date. */
export interface MarketDate {
  /** Null: all markets of the series, on a date without a file. */
  readonly id: string | null
  readonly date: string
  /** Midnight, ms since the epoch. */
  readonly startMs: number
  readonly isOpen: boolean
  /** Null without a file. */
  readonly file: string | null
  readonly coverage: FileCoverage | null
  readonly segments: readonly BookSegment[]
}

/** Takes markets and dates in the order of dates, and makes rows of them. */
export interface CoverageTarget {
  /** False when no more rows are wanted. */
  add(entry: MarketDate): boolean
  /** By field: doubles (NaN for null), texts or null, or big integers (below 0 for null). */
  columns(): readonly CoverageColumn[]
  readonly rows: number
  readonly hasMore: boolean
}

export type CoverageColumn = readonly number[] | readonly (string | null)[] | readonly bigint[]
