// The plan of an order-book request, made from file indexes alone: which markets have rows on which date, from which
// tick to which, and where a book must be carried from. Row counts, the row limit and missing dates all come out of it;
// nothing is decoded here. Rules: contract.md 26, 27 and 31.

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

/** Dates followed backwards for the book of a market whose files carry no keyframes. */
const CARRY_OVER_DATES_MAX = 31
/**
 * Pause between two recordings over which a book is still carried to the next date. Recordings cut at midnight lose
 * seconds, an outage lasts longer; only files that state their coverage can tell.
 */
const CARRY_OVER_PAUSE_NS_MAX = HOUR_NS

/** Both inclusive. */
export interface TickSpan {
  readonly firstTick: number
  readonly lastTick: number
}

/** A market's part in one date: it has a row at every tick from `firstTick` to `lastTick`. */
export interface MarketPlan {
  readonly id: string
  /** The earliest of the dates whose files its book at midnight comes from; null when nothing is carried. */
  readonly carriedFrom: string | null
  /** Ticks are counted from the date's midnight. */
  readonly firstTick: number
  readonly lastTick: number
  /** Ticks between these that have no row, ascending; left out where each has one. */
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
  /** The last row where `limit` leaves out rows behind it; the dates behind it are not looked at. */
  readonly lastRow: RowPlace | null
}

/** The index of a date's file; undefined when there is none. Asked for requested dates and the ones before them. */
export type IndexOfDate = (date: string) => FileIndex | undefined

/** Close times, ms since the epoch, by market id; a market without one is open as long as the recording covers it. */
export type CloseTimes = Readonly<Record<string, number>>

/** Plans `query` for the markets that `isWanted` accepts; `withGaps` looks at the losses of each. */
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

/** Rows of the ticks up to `stopTick`, which is not counted. */
export function countRows(markets: readonly MarketPlan[], stopTick = Infinity): number {
  let rows = 0
  for (const market of markets) {
    rows += ticksIn(market, market.firstTick, stopTick)
    for (const span of market.skipped ?? [])
      rows -= ticksIn(span, market.firstTick, Math.min(stopTick, market.lastTick + 1))
  }
  return rows
}

/** Ticks of a span from `firstTick` on up to `stopTick`, which is not counted. */
function ticksIn(span: TickSpan, firstTick: number, stopTick: number): number {
  return Math.max(0, Math.min(span.lastTick + 1, stopTick) - Math.max(span.firstTick, firstTick))
}

function hasRowAt({ firstTick, lastTick, skipped }: MarketPlan, tick: number): boolean {
  const isSkipped = skipped?.some((span) => span.firstTick <= tick && tick <= span.lastTick) === true
  return firstTick <= tick && tick <= lastTick && !isSkipped
}

/** The market's part from its first row to its last; nothing where it has none. */
export function trimmed(market: MarketPlan): readonly MarketPlan[] {
  let { firstTick, lastTick } = market
  const { skipped = [] } = market
  for (const span of skipped)
    if (span.firstTick <= firstTick) firstTick = Math.max(firstTick, span.lastTick + 1)
  for (const span of skipped.toReversed())
    if (span.lastTick >= lastTick) lastTick = Math.min(lastTick, span.firstTick - 1)
  return firstTick > lastTick ? [] : [{ ...market, firstTick, lastTick }]
}

/** The market's part behind the place where the rows begin; nothing where it has no row there. */
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

/** The first `rows` rows of dates that have more, at least one. */
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

/** The tick of the row with this number, counted from 1, of a date that has it. */
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

/** A market of a date whose book becomes known there. */
export interface KnownMarket extends Pick<MarketPlan, 'id' | 'carriedFrom'> {
  /** ns after the date's midnight. */
  readonly knownFrom: number
}

/** The date's markets whose books become known, in code unit order of their ids. */
export function knownMarkets(
  date: string,
  index: FileIndex,
  isWanted: (marketId: string) => boolean,
  indexOf: IndexOfDate,
): KnownMarket[] {
  const known: KnownMarket[] = []
  for (const id of marketsOf(date, index, isWanted, indexOf)) {
    const firstBook = index.markets.get(id)?.firstBook ?? null
    // A keyframe at midnight is the carried book itself; where they are promised, no keyframe means no book. Only files
    // of writers who promise nothing leave it to the reader what goes on.
    const isTold = firstBook === 0 || index.tellsMidnight
    const carriedFrom = isTold ? null : carriedFromDate(date, id, indexOf, CARRY_OVER_DATES_MAX)
    // What the file says it leaves out is unknown, whatever is carried over it.
    const knownFrom = carriedFrom === null ? firstBook : Math.max(0, index.statedCoverage?.from ?? 0)
    if (knownFrom !== null) known.push({ id, carriedFrom, knownFrom })
  }
  return known
}

/** The market's part up to its last tick at or before the close; nothing when it was closed before its first one. */
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
 * The date's markets. In a foreign file without keyframes at midnight a silent market has no row although its book
 * lives on.
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
 * The date whose file makes a market's book at midnight of `date` known, or null when it is not known then. Files that
 * neither clear nor interrupt the book hand the question on to the date before.
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

/** Throws `too_many_rows` when the planned answer is over the limit of its format. */
export function refuseTooManyRows(query: LobQuery, plan: LobPlan): void {
  const problem = rowLimitProblem(query, plan)
  if (problem !== null) throw new ApiError('too_many_rows', problem)
}

/** What is wrong with an answer of so many rows, and what to ask instead; null when it is within the limit. */
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

/** The first and the last tick that a row of the plan has. */
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
