// The rows of /api/v1/coverage: hours or dates of markets, from the segments in which their books are known.

import type { CoverageState, DateCondition } from '../../shared/coverage.ts'
import { lagOfBucketMs } from '../../shared/lag-histogram.ts'
import { HOUR_NUMBERS, type MarketHours } from '../../shared/lob-hours.ts'
import type { RecordField } from '../../shared/record-field.ts'
import type { CoverageQuery } from '../../shared/record-task.ts'
import { MS_PER_HOUR, NS_PER_MS, NS_PER_SECOND } from '../../shared/utc-date.ts'
import { type BookSegment, DAY_NS, UNRECORDED_NS_MIN } from '../lob/book-segments.ts'
import { HOUR_NS } from '../lob/file-index.ts'
import type { CoverageColumn, CoverageTarget, MarketDate } from './coverage-target.ts'

const LAG_DIGITS = 3
/** By bucket: texts of numbers are dear. */
const LAGS_MS: number[] = []
const NONE_TS = -1n

/** Nanoseconds of an hour or a date by what was the matter with the book, and what happened in it. */
class Period {
  readonly ns = { known: 0, gap: 0, not_listed: 0, not_recorded: 0, closed: 0 }
  gaps = 0
  firstBook: number | undefined
  events = 0
  snapshots = 0
  lagP50 = -1
  lagP99 = -1

  get state(): CoverageState {
    const { known, gap, not_listed: notListed, not_recorded: notRecorded, closed } = this.ns
    if (known > 0) return gap === 0 && notRecorded < UNRECORDED_NS_MIN ? 'complete' : 'partial'
    if (gap > 0) return 'gap'
    if (notListed > 0) return 'not_listed'
    return closed > 0 && notRecorded === 0 ? 'closed' : 'not_recorded'
  }
}

/** `lengthNs`: of each period; together they are the date. */
function periodsOf(
  segments: readonly BookSegment[],
  market: MarketHours | undefined,
  lengthNs: number,
): Period[] {
  const periods = Array.from({ length: DAY_NS / lengthNs }, () => new Period())
  for (const { from, to, knowledge } of segments) {
    const first = Math.floor(from / lengthNs)
    if (knowledge === 'gap') periods[first]!.gaps++
    for (let index = first; index * lengthNs < to; index++) {
      const period = periods[index]!
      const start = Math.max(from, index * lengthNs)
      period.ns[knowledge] += Math.min(to, (index + 1) * lengthNs) - start
      if (knowledge === 'known') period.firstBook ??= start
    }
  }
  const { hours = [] } = market ?? {}
  for (let at = 0; at < hours.length; at += HOUR_NUMBERS) {
    const period = periods[Math.floor((hours[at]! * HOUR_NS) / lengthNs)]!
    period.events += hours[at + 1]!
    period.snapshots += hours[at + 2]!
    period.lagP50 = hours[at + 3]!
    period.lagP99 = hours[at + 4]!
  }
  return periods
}

/** What a date is worth, in the words of those who sell data. */
function conditionOf({ isOpen, file }: MarketDate, state: CoverageState): DateCondition {
  if (isOpen) return 'pending'
  if (file === null) return 'missing'
  return state === 'partial' || state === 'gap' || state === 'not_recorded' ? 'degraded' : 'available'
}

function lagMs(bucket: number): number {
  if (bucket < 0) return Number.NaN
  return (LAGS_MS[bucket] ??= Number(lagOfBucketMs(bucket).toPrecision(LAG_DIGITS)))
}

type ValueOf = (period: Period, entry: MarketDate, index: number) => number | string | bigint | null

const VALUES: Readonly<Record<string, ValueOf>> = {
  market_id: (_, { id }) => id,
  date: (_, { date }) => date,
  hour: (_, { startMs }, index) => startMs + index * MS_PER_HOUR,
  state: ({ state }) => state,
  condition: ({ state }, entry) => conditionOf(entry, state),
  known_s: ({ ns }) => ns.known / NS_PER_SECOND,
  gap_s: ({ ns }) => ns.gap / NS_PER_SECOND,
  gaps: ({ gaps }) => gaps,
  events: ({ events }) => events,
  first_book_ts: ({ firstBook }, { startMs }) =>
    firstBook === undefined ? NONE_TS : BigInt(startMs) * NS_PER_MS + BigInt(firstBook),
  snapshots: ({ snapshots }) => snapshots,
  recv_lag_p50_ms: ({ lagP50 }) => lagMs(lagP50),
  recv_lag_p99_ms: ({ lagP99 }) => lagMs(lagP99),
  file: (_, { file }) => file,
}

export class CoverageRows implements CoverageTarget {
  readonly #query: CoverageQuery
  readonly #values: readonly ValueOf[]
  readonly #columns: ReturnType<ValueOf>[][]
  /** Rows so far, skipped ones included. */
  #seen = 0
  hasMore = false
  rows = 0

  constructor(query: CoverageQuery, fields: readonly RecordField[]) {
    this.#query = query
    this.#values = fields.map(({ name }) => VALUES[name]!)
    this.#columns = fields.map(() => [])
  }

  add(entry: MarketDate): boolean {
    const { by, offset, limit } = this.#query
    const count = by === 'day' ? 1 : DAY_NS / HOUR_NS
    if (this.#seen + count <= offset) {
      this.#seen += count
      return true
    }
    const market = entry.coverage?.markets.get(entry.id ?? '')
    const periods = periodsOf(entry.segments, market, DAY_NS / count)
    if (by === 'day' && market !== undefined) {
      periods[0]!.lagP50 = market.lagP50
      periods[0]!.lagP99 = market.lagP99
    }
    for (const [index, period] of periods.entries()) {
      if (this.#seen === offset + limit) {
        this.hasMore = true
        return false
      }
      if (this.#seen++ < offset) continue
      for (let column = 0; column < this.#values.length; column++)
        this.#columns[column]!.push(this.#values[column]!(period, entry, index))
      this.rows++
    }
    return true
  }

  columns(): readonly CoverageColumn[] {
    return this.#columns as CoverageColumn[]
  }
}
