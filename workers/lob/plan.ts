// The plan of an order-book request, made from file indexes alone: the markets with rows on each date, their first and last tick,
// and the date that a book is carried from. It gives the row count, the row limit and the missing dates. No rows are decoded.
// Rules: contract.md 26, 27 and 31.

import { ApiError } from '../../shared/errors.ts'
import { OUTPUT_FORMATS, STREAMED_ROWS_MAX } from '../../shared/formats.ts'
import type { LobQuery, RowPlace } from '../../shared/lob-task.ts'
import {
  addDays,
  NS_PER_SECOND,
  SECONDS_PER_DAY,
  SECONDS_PER_HOUR,
  utcDateStartMs,
} from '../../shared/utc-date.ts'
import type { RowSpan } from '../../shared/stream-task.ts'
import { DAY_NS } from './book-stretches.ts'
import { type FileIndex, HOUR_NS } from './file-index.ts'

/** How many dates back a book is searched if the files have no keyframes. */
const CARRY_OVER_DATES_MAX = 31
/**
 * A book is carried to the next date over a pause between two recordings of at most this length. Recordings cut at midnight lose
 * seconds; an outage lasts longer. The pause is known only if both files state their coverage.
 */
const CARRY_OVER_PAUSE_NS_MAX = HOUR_NS

/** Both inclusive. */
export interface TickSpan {
  readonly firstTick: number
  readonly lastTick: number
}

/** A market's rows of one date: one at every tick from `firstTick` to `lastTick`. */
export interface MarketPlan {
  readonly id: string
  /** The earliest date whose file is needed for its book at midnight; null if no book is carried. */
  readonly carriedFrom: string | null
  /** Ticks are counted from the date's midnight. */
  readonly firstTick: number
  readonly lastTick: number
  /** Ticks in this range without a row, ascending. Default: none. */
  readonly skipped?: readonly TickSpan[]
}

/** One requested date that has a file. Markets are in code unit order of their ids. */
export interface DatePlan {
  readonly date: string
  readonly startSeconds: number
  readonly markets: readonly MarketPlan[]
}

export interface LobPlan {
  readonly dates: readonly DatePlan[]
  readonly missingDates: readonly string[]
  /** Rows of the complete answer. */
  readonly rows: number
  /** The last row, if `limit` leaves out later rows; later dates are not planned then. */
  readonly lastRow: RowPlace | null
}

/** Returns the index of a date's file, or undefined. Called for the requested dates and dates before them. */
export type IndexOfDate = (date: string) => FileIndex | undefined

/** Close times, ms since the epoch, by market id. A market without one is open as long as the recording covers it. */
export type CloseTimes = Readonly<Record<string, number>>

/** Plans `query` for the markets that `isWanted` accepts. `withGaps` may remove ticks in gaps from a market's plan. */
export function planLob(
  query: LobQuery,
  isWanted: (marketId: string) => boolean,
  indexOf: IndexOfDate,
  closesAtMs: CloseTimes = {},
  withGaps: (market: MarketPlan, date: string) => readonly MarketPlan[] = (market) => [market],
): LobPlan {
  const dates: DatePlan[] = []
  const missingDates: string[] = []
  const { limit } = query
  let rows = 0
  for (const date of query.dates) {
    const index = indexOf(date)
    if (index === undefined) {
      missingDates.push(date)
      continue
    }
    const startMs = utcDateStartMs(date)!
    const startSeconds = startMs / 1000
    const markets = planDate(query, date, index, isWanted, indexOf)
      .flatMap((market) => endAtClose(market, query.intervalS, startMs, closesAtMs[market.id]))
      .flatMap((market) => beginBehind(market, query, startSeconds))
      .flatMap((market) => withGaps(market, date))
    rows += countRows(markets)
    dates.push({ date, startSeconds, markets })
    if (limit !== null && rows > limit) return { ...cutAfter(dates, query.intervalS, limit), missingDates }
  }
  return { dates, missingDates, rows, lastRow: null }
}

/** The number of rows at ticks before `stopTick`. */
export function countRows(markets: readonly MarketPlan[], stopTick = Infinity): number {
  let rows = 0
  for (const market of markets) {
    rows += ticksIn(market, market.firstTick, stopTick)
    for (const span of market.skipped ?? [])
      rows -= ticksIn(span, market.firstTick, Math.min(stopTick, market.lastTick + 1))
  }
  return rows
}

/** The number of ticks of a span from `firstTick` to `stopTick`, exclusive. */
function ticksIn(span: TickSpan, firstTick: number, stopTick: number): number {
  return Math.max(0, Math.min(span.lastTick + 1, stopTick) - Math.max(span.firstTick, firstTick))
}

function hasRowAt({ firstTick, lastTick, skipped }: MarketPlan, tick: number): boolean {
  const isSkipped = skipped?.some((span) => span.firstTick <= tick && tick <= span.lastTick) === true
  return firstTick <= tick && tick <= lastTick && !isSkipped
}

/** Removes skipped ticks at both ends of a market's plan. Returns nothing if the market has no rows left. */
export function trimmed(market: MarketPlan): readonly MarketPlan[] {
  let { firstTick, lastTick } = market
  const { skipped = [] } = market
  for (const span of skipped)
    if (span.firstTick <= firstTick) firstTick = Math.max(firstTick, span.lastTick + 1)
  for (const span of skipped.toReversed())
    if (span.lastTick >= lastTick) lastTick = Math.min(lastTick, span.firstTick - 1)
  return firstTick > lastTick ? [] : [{ ...market, firstTick, lastTick }]
}

/** The market's plan after the place `after`; nothing if it has no rows there. */
function beginBehind(
  market: MarketPlan,
  { after, intervalS }: LobQuery,
  startSeconds: number,
): readonly MarketPlan[] {
  if (after === null) return [market]
  const ticks = (after.seconds - startSeconds) / intervalS
  const hasOwnRow = Number.isInteger(ticks) && after.marketId !== null && market.id > after.marketId
  const firstTick = Math.max(market.firstTick, hasOwnRow ? ticks : Math.floor(ticks) + 1)
  return firstTick > market.lastTick ? [] : [{ ...market, firstTick }]
}

/** Cuts a plan with more rows to its first `rows` rows, at least one. */
function cutAfter(
  dates: readonly DatePlan[],
  intervalS: number,
  rows: number,
): Pick<LobPlan, 'dates' | 'rows' | 'lastRow'> {
  let left = rows
  const cut: DatePlan[] = []
  for (const datePlan of dates) {
    const { startSeconds, markets } = datePlan
    const rowsOfDate = countRows(markets)
    if (rowsOfDate < left) {
      left -= rowsOfDate
      cut.push(datePlan)
      continue
    }
    const tick = tickOfRow(markets, left)
    left -= countRows(markets, tick)
    const atTick = markets.filter((market) => hasRowAt(market, tick))
    const last = new Map(atTick.slice(0, left).map(({ id }) => [id, tick]))
    const kept = markets.flatMap((market) => {
      const lastTick = last.get(market.id) ?? Math.min(market.lastTick, tick - 1)
      return lastTick < market.firstTick ? [] : trimmed({ ...market, lastTick })
    })
    cut.push({ ...datePlan, markets: kept })
    const lastRow = { seconds: startSeconds + tick * intervalS, marketId: atTick[left - 1]!.id }
    return { dates: cut, rows, lastRow }
  }
  throw new Error('the dates have fewer rows than are left of them')
}

/** The tick of a date's row with this number, counted from 1. The date must have that row. */
function tickOfRow(markets: readonly MarketPlan[], row: number): number {
  let low = 0
  let high = SECONDS_PER_DAY
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    if (countRows(markets, middle + 1) >= row) high = middle
    else low = middle + 1
  }
  return low
}

function planDate(
  query: LobQuery,
  date: string,
  index: FileIndex,
  isWanted: (marketId: string) => boolean,
  indexOf: IndexOfDate,
): MarketPlan[] {
  const firstHourTick = query.hour === null ? 0 : Math.ceil((query.hour * SECONDS_PER_HOUR) / query.intervalS)
  const stopSecond = query.hour === null ? SECONDS_PER_DAY : (query.hour + 1) * SECONDS_PER_HOUR
  const intervalNs = query.intervalS * NS_PER_SECOND
  const lastTick = Math.min(
    Math.ceil(stopSecond / query.intervalS) - 1,
    Math.floor(index.coversTo / intervalNs),
  )
  return knownMarkets(date, index, isWanted, indexOf).flatMap(({ id, carriedFrom, knownFrom }) => {
    const firstTick = Math.max(Math.ceil(knownFrom / intervalNs), firstHourTick)
    return firstTick <= lastTick ? [{ id, carriedFrom, firstTick, lastTick }] : []
  })
}

/** A market whose book is known at some time of a date. */
export interface KnownMarket extends Pick<MarketPlan, 'id' | 'carriedFrom'> {
  /** ns after the date's midnight. */
  readonly knownFrom: number
}

/** The markets whose books are known at some time of the date, in code unit order of their ids. */
export function knownMarkets(
  date: string,
  index: FileIndex,
  isWanted: (marketId: string) => boolean,
  indexOf: IndexOfDate,
): KnownMarket[] {
  const known: KnownMarket[] = []
  for (const id of marketsOf(date, index, isWanted, indexOf)) {
    const firstBook = index.markets.get(id)?.firstBook ?? null
    // A keyframe at midnight is the carried book itself. If the writer promises keyframes, no keyframe means no known book. Only
    // for files without this promise, the reader must search the dates before.
    const isTold = firstBook === 0 || index.tellsMidnight
    const carriedFrom = isTold ? null : carriedFromDate(date, id, indexOf, CARRY_OVER_DATES_MAX)
    // A carried book is unknown before the start of the file's stated coverage.
    const knownFrom = carriedFrom === null ? firstBook : Math.max(0, index.statedCoverage?.from ?? 0)
    if (knownFrom !== null) known.push({ id, carriedFrom, knownFrom })
  }
  return known
}

/** The market's plan up to its last tick at or before the close; nothing if it closed before its first tick. */
function endAtClose(
  market: MarketPlan,
  intervalS: number,
  dateStartMs: number,
  closeMs: number | undefined,
): readonly MarketPlan[] {
  if (closeMs === undefined) return [market]
  const lastTick = Math.min(market.lastTick, Math.floor((closeMs - dateStartMs) / (intervalS * 1000)))
  return lastTick < market.firstTick ? [] : [{ ...market, lastTick }]
}

/**
 * The date's markets. In a file of another writer, without keyframes at midnight, a market without events has no row although
 * its book is still known from the date before.
 */
function marketsOf(
  date: string,
  index: FileIndex,
  isWanted: (marketId: string) => boolean,
  indexOf: IndexOfDate,
): string[] {
  const ids = [...index.markets.keys()].filter(isWanted)
  if (!index.mayLackBooks) return ids
  const previous = indexOf(addDays(date, -1))
  if (previous === undefined) return ids
  const silent = [...previous.markets.keys()].filter((id) => isWanted(id) && !index.markets.has(id))
  return silent.length === 0 ? ids : [...ids, ...silent].toSorted()
}

/**
 * The date whose file determines a market's book at midnight of `date`, or null if the book is unknown then. If a file neither
 * clears nor interrupts the book, the search continues with the date before.
 */
function carriedFromDate(date: string, id: string, indexOf: IndexOfDate, datesLeft: number): string | null {
  const previousDate = addDays(date, -1)
  const previous = datesLeft > 0 ? indexOf(previousDate) : undefined
  const market = previous?.markets.get(id)
  if (previous === undefined || market === undefined || market.bookAtEnd === 'unknown') return null
  if (isPausedTooLong(previous, indexOf(date)!)) return null
  return market.bookAtEnd === 'known'
    ? previousDate
    : carriedFromDate(previousDate, id, indexOf, datesLeft - 1)
}

function isPausedTooLong(previous: FileIndex, next: FileIndex): boolean {
  const before = previous.statedCoverage
  const after = next.statedCoverage
  if (before === undefined || after === undefined) return false
  return after.from + DAY_NS - before.to > CARRY_OVER_PAUSE_NS_MAX
}

/** Throws `too_many_rows` if the planned answer exceeds the limit of its format. */
export function refuseTooManyRows(query: LobQuery, plan: LobPlan): void {
  const problem = rowLimitProblem(query, plan)
  if (problem !== null) throw new ApiError('too_many_rows', problem)
}

/** The error text for an answer with too many rows, with alternatives; null if it is within the limit. */
export function rowLimitProblem(query: LobQuery, plan: Pick<LobPlan, 'rows'>): string | null {
  const limit = OUTPUT_FORMATS[query.format].rowsMax
  if (plan.rows <= limit) return null
  const streamed =
    limit < STREAMED_ROWS_MAX ? ` format=ndjson, csv or parquet (up to ${STREAMED_ROWS_MAX} rows),` : ''
  return (
    `The request would return ${plan.rows} rows; ${query.format} answers at most ${limit}. ` +
    `Ask for${streamed} a larger interval, one hour, fewer dates, a single market or the first rows with limit.`
  )
}

/** The times of the first and the last tick with a row. */
export function spanOf({ intervalS }: LobQuery, { dates }: LobPlan): RowSpan | undefined {
  let span: RowSpan | undefined
  for (const { startSeconds, markets } of dates)
    for (const { firstTick, lastTick } of markets) {
      const firstMs = (startSeconds + firstTick * intervalS) * 1000
      const lastMs = (startSeconds + lastTick * intervalS) * 1000
      span = {
        firstMs: Math.min(firstMs, span?.firstMs ?? firstMs),
        lastMs: Math.max(lastMs, span?.lastMs ?? lastMs),
      }
    }
  return span
}
