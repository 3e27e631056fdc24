// Fields and values of the endpoints /api/v1/coverage and /api/v1/gaps.

import type { RecordField } from './record-field.ts'

export const COVERAGE_PERIODS = ['hour', 'day'] as const
export type CoveragePeriod = (typeof COVERAGE_PERIODS)[number]

/**
 * `complete`: known whenever it was listed. `partial`: known for a part. `gap`: recorded, but never known. `not_listed`: recorded,
 * but the market does not appear yet. `not_recorded`: no recording. `closed`: the market was closed.
 */
export type CoverageState = 'complete' | 'partial' | 'gap' | 'not_listed' | 'not_recorded' | 'closed'

/** `available`: closed and known whenever listed. `degraded`: closed, with gaps. `missing`: no file. `pending`: not closed. */
export type DateCondition = 'available' | 'degraded' | 'missing' | 'pending'

/**
 * `interrupted`: the connection was lost or messages are missing. `no_snapshot`: the first snapshot has not come yet, although
 * messages came or may have come. `not_recorded`: nothing was recorded.
 */
export type GapCause = 'interrupted' | 'no_snapshot' | 'not_recorded'

// oxfmt-ignore
export const COVERAGE_FIELDS = [
  { name: 'market_id', type: 'string', unit: 'none', nullable: true, meaning: 'Market; null for all markets of a series on a date without a file' },
  { name: 'date', type: 'date', unit: 'none', nullable: false, meaning: 'UTC date' },
  { name: 'hour', type: 'instant', unit: 'none', nullable: false, meaning: 'Start of the UTC hour; only with by=hour' },
  { name: 'state', type: 'string', unit: 'none', nullable: false, meaning: 'complete, partial, gap, not_listed, not_recorded or closed' },
  { name: 'condition', type: 'string', unit: 'none', nullable: false, meaning: 'available, degraded, missing or pending; only with by=day' },
  { name: 'known_s', type: 'number', unit: 'none', nullable: false, meaning: 'Seconds in which the book is known' },
  { name: 'gap_s', type: 'number', unit: 'none', nullable: false, meaning: 'Recorded seconds in which the book is unknown' },
  { name: 'gaps', type: 'integer', unit: 'none', nullable: false, meaning: 'Gaps that begin here' },
  { name: 'events', type: 'integer', unit: 'none', nullable: false, meaning: 'Book events, without those of keyframes' },
  { name: 'first_book_ts', type: 'integer', isWide: true, isBig: true, unit: 'none', nullable: true, meaning: 'First instant at which the book is known, nanoseconds since the epoch' },
  { name: 'snapshots', type: 'integer', unit: 'none', nullable: false, meaning: 'How often the exchange stated the whole book' },
  { name: 'recv_lag_p50_ms', type: 'number', unit: 'none', nullable: true, meaning: 'Median of the receive lag (receive time minus event time) in milliseconds, accurate to a tenth of its value; null without receive times, or if they are not after the event times' },
  { name: 'recv_lag_p99_ms', type: 'number', unit: 'none', nullable: true, meaning: '99th percentile of the receive lag, likewise' },
  { name: 'file', type: 'string', unit: 'none', nullable: true, meaning: 'Path of the file below the lake; null without one' },
] as const satisfies readonly RecordField[]

// oxfmt-ignore
export const GAP_FIELDS = [
  { name: 'market_id', type: 'string', unit: 'none', nullable: true, meaning: 'Market; null for all markets of a series on dates without a file' },
  { name: 'from_ts', type: 'integer', isWide: true, isBig: true, unit: 'none', nullable: false, meaning: 'Start, nanoseconds since the epoch' },
  { name: 'to_ts', type: 'integer', isWide: true, isBig: true, unit: 'none', nullable: false, meaning: 'End, exclusive' },
  { name: 'cause', type: 'string', unit: 'none', nullable: false, meaning: 'interrupted, no_snapshot or not_recorded' },
] as const satisfies readonly RecordField[]

export const COVERAGE_FIELDS_BY: Readonly<Record<CoveragePeriod, readonly string[]>> = {
  hour: COVERAGE_FIELDS.map(({ name }) => name).filter((name) => name !== 'date' && name !== 'condition'),
  day: COVERAGE_FIELDS.map(({ name }) => name).filter((name) => name !== 'hour'),
}
