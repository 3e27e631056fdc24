// The rows of /api/v1/coverage: an hour or a date of a market, computed from its book stretches (book-stretches.ts).

import type { CoverageState, DateCondition } from '../../shared/coverage.ts'
import { lagOfBucketMs } from '../../shared/lag-histogram.ts'
import { HOUR_NUMBERS } from '../../shared/lob-hours.ts'
import { RECORD_ENCODE_BATCH_ROWS } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { CoverageQuery } from '../../shared/record-task.ts'
import { MS_PER_HOUR, NS_PER_SECOND } from '../../shared/utc-date.ts'
import { DAY_NS, UNRECORDED_NS_MIN } from '../lob/book-stretches.ts'
import { HOUR_NS } from '../lob/file-index.ts'
import type { CoverageTarget, MarketDate, RecordedDate } from './coverage-target.ts'
import { PageCut } from './counted-page.ts'
import { columnOf, type RecordBatch } from './record-batch.ts'

const LAG_DIGITS = 3
/** By bucket. Cached, because rounding through text is slow. */
const LAGS_MS: number[] = []

/** An hour or a date: its nanoseconds by the state of the book, and its counts. */
class Period {
  known = 0
  gap = 0
  not_listed = 0
  not_recorded = 0
  closed = 0
  gaps = 0
  firstBook = -1
  events = 0
  snapshots = 0
  lagP50 = -1
  lagP99 = -1

  get state(): CoverageState {
    const { known, gap, not_listed: notListed, not_recorded: notRecorded, closed } = this
    if (known > 0) return gap === 0 && notRecorded < UNRECORDED_NS_MIN ? 'complete' : 'partial'
    if (gap > 0) return 'gap'
    if (notListed > 0) return 'not_listed'
    return closed > 0 && notRecorded === 0 ? 'closed' : 'not_recorded'
  }
}

/** Divides a date into `count` periods of equal length. */
function periodsOf({ stretches, hours: market }: MarketDate, count: number): Period[] {
  const lengthNs = DAY_NS / count
  const periods: Period[] = []
  while (periods.length < count) periods.push(new Period())
  for (const { from, to, knowledge } of stretches) {
    const first = Math.floor(from / lengthNs)
    if (knowledge === 'gap') periods[first]!.gaps++
    for (let index = first; index * lengthNs < to; index++) {
      const period = periods[index]!
      const start = Math.max(from, index * lengthNs)
      period[knowledge] += Math.min(to, (index + 1) * lengthNs) - start
      if (knowledge === 'known' && period.firstBook < 0) period.firstBook = start
    }
  }
  if (market === undefined) return periods
  const { hours } = market
  for (let at = 0; at < hours.length; at += HOUR_NUMBERS) {
    const period = periods[count === 1 ? 0 : hours[at]!]!
    period.events += hours[at + 1]!
    period.snapshots += hours[at + 2]!
    period.lagP50 = hours[at + 3]!
    period.lagP99 = hours[at + 4]!
  }
  if (count === 1) [periods[0]!.lagP50, periods[0]!.lagP99] = [market.lagP50, market.lagP99]
  return periods
}

/** The condition of a date, in the terms of data vendors. */
function conditionOf({ isOpen, part }: RecordedDate, state: CoverageState): DateCondition {
  if (isOpen) return 'pending'
  if (part === undefined) return 'missing'
  return state === 'partial' || state === 'gap' || state === 'not_recorded' ? 'degraded' : 'available'
}

function lagMs(bucket: number): number {
  if (bucket <= 0) return Number.NaN
  return (LAGS_MS[bucket] ??= Number(lagOfBucketMs(bucket).toPrecision(LAG_DIGITS)))
}

type ValueOf = (period: Period, entry: MarketDate, index: number) => number | string | bigint | null

const VALUES: Readonly<Record<string, ValueOf>> = {
  market_id: (_, { id }) => id,
  date: (_, { day }) => day.date,
  hour: (_, { day }, index) => day.startMs + index * MS_PER_HOUR,
  state: ({ state }) => state,
  condition: ({ state }, { day }) => conditionOf(day, state),
  known_s: ({ known }) => known / NS_PER_SECOND,
  gap_s: ({ gap }) => gap / NS_PER_SECOND,
  gaps: ({ gaps }) => gaps,
  events: ({ events }) => events,
  first_book_ts: ({ firstBook }, { day }) => (firstBook < 0 ? -1n : day.startNs + BigInt(firstBook)),
  snapshots: ({ snapshots }) => snapshots,
  recv_lag_p50_ms: ({ lagP50 }) => lagMs(lagP50),
  recv_lag_p99_ms: ({ lagP99 }) => lagMs(lagP99),
  file: (_, { day }) => day.part?.name ?? null,
}

export class CoverageRows implements CoverageTarget {
  readonly #query: CoverageQuery
  readonly #values: readonly ValueOf[]
  readonly #fields: readonly RecordField[]
  readonly #batches: { rows: number; readonly columns: ReturnType<typeof columnOf>[] }[] = []
  readonly #cut: PageCut
  hasMore = false

  constructor(query: CoverageQuery, fields: readonly RecordField[]) {
    this.#query = query
    this.#cut = new PageCut(query.offset, query.limit)
    this.#values = fields.map(({ name }) => VALUES[name]!)
    this.#fields = fields
  }

  get rows(): number {
    return this.#cut.taken
  }

  add(entry: MarketDate): boolean {
    const { by, limit } = this.#query
    const count = by === 'day' ? 1 : DAY_NS / HOUR_NS
    const before = this.rows
    const { from, to } = this.#cut.next(count)
    const rowsMax = Math.min(limit, RECORD_ENCODE_BATCH_ROWS)
    const periods = from < to ? periodsOf(entry, count) : []
    for (let index = from; index < to; index++) {
      const row = (before + index - from) % RECORD_ENCODE_BATCH_ROWS
      if (row === 0)
        this.#batches.push({ rows: 0, columns: this.#fields.map((field) => columnOf(field, rowsMax)) })
      const batch = this.#batches.at(-1)!
      batch.rows++
      for (let column = 0; column < this.#values.length; column++)
        batch.columns[column]![row] = this.#values[column]!(periods[index]!, entry, index) as never
    }
    this.hasMore = to < count
    return !this.hasMore
  }

  batches(): Iterable<RecordBatch> {
    return this.#batches
  }
}
