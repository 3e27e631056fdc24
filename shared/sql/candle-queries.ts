// The hot half of `/candles`: statements over the traded candles that Postgres holds. A candle that its partition's
// manifest entry declares cold is left out even when its row is still there (it arrived late and waits for the next
// compaction), so that a minute never comes from both stores. Filling, rolling up and rounding happen elsewhere.

import { countOutside, type CoveredSpan } from './covered-spans.ts'
import type { BatchStart, KeysetRead } from './keyset-pages.ts'
import { generationColumn, type WithGeneration } from './manifest-queries.ts'
import { type SqlStatement, StatementBuilder } from './statement.ts'

/** Minutes of the stored intervals; the others are rolled up from 1. */
type StoredInterval = 1 | 60 | 1440

/** A traded candle. Prices are 1/10000 dollar, volume and open interest 1/100 contract. */
export interface StoredCandle {
  readonly market_ticker: string
  readonly event_ticker: string
  readonly series_ticker: string
  /** Minutes. */
  readonly period_interval: StoredInterval
  /** Milliseconds since the epoch. */
  readonly end_period_ts: number
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: bigint
  readonly open_interest: bigint
}

/** Every column of a candle as it is stored: name and SQL type. */
export const STORED_CANDLE_COLUMNS = {
  market_ticker: 'text',
  event_ticker: 'text',
  series_ticker: 'text',
  period_interval: 'int4',
  end_period_ts: 'timestamptz',
  open: 'int4',
  high: 'int4',
  low: 'int4',
  close: 'int4',
  volume: 'int8',
  open_interest: 'int8',
} as const satisfies Record<keyof StoredCandle, string>

/** Which markets: every condition given must hold. Null is no condition, an empty list matches nothing. */
export interface CandleSelection {
  readonly interval: StoredInterval
  readonly marketTicker: string | null
  readonly eventTicker: string | null
  /** One series, or those of a station. */
  readonly seriesTickers: readonly string[] | null
}

/** `fromMs` inclusive, `toMs` exclusive, both of the candle's end. */
export interface CandleRange {
  readonly fromMs: number
  readonly toMs: number
}

interface CandleKey {
  readonly endMs: number
  readonly marketTicker: string
}

const COUNTED = { from: 'candles c', scope: 'c.series_ticker', instant: 'c.end_period_ts' }
const COLUMNS = Object.keys(STORED_CANDLE_COLUMNS).join(', ')
// By the whole key of the one partition that a candle can belong to, a month of its series.
const IS_HOT =
  `NOT EXISTS (SELECT FROM lake_manifest p WHERE p.dataset = 'candles' AND p.scope = c.series_ticker` +
  ` AND p.period_start = date_trunc('month', c.end_period_ts, 'UTC') AND c.end_period_ts < p.cut_over)`

/**
 * The candles of a range by (end_period_ts, market_ticker), each with the generation of the manifest that it was read
 * under.
 */
export function plannedCandleRead(
  selection: CandleSelection,
  range: CandleRange,
): KeysetRead<StoredCandle & WithGeneration, CandleKey> {
  const columns = `${COLUMNS}, ${generationColumn('candles')}`
  return { statementFor: (start) => rangeStatement(selection, range, start, columns), keyOf: candleKey }
}

/** One row with `rows`: how many candles there are outside the covered spans, counted up to `countMax`. */
export function candleCount(
  selection: CandleSelection,
  range: CandleRange,
  covered: readonly CoveredSpan[],
  countMax: number,
): SqlStatement {
  const statement = selected(selection)
  statement.where(`c.end_period_ts >= ${statement.addInstant(range.fromMs)}`)
  statement.where(`c.end_period_ts < ${statement.addInstant(range.toMs)}`)
  return countOutside(statement, COUNTED, covered, countMax)
}

function candleKey(row: StoredCandle): CandleKey {
  return { endMs: row.end_period_ts, marketTicker: row.market_ticker }
}

function rangeStatement(
  selection: CandleSelection,
  range: CandleRange,
  start: BatchStart<CandleKey>,
  columns: string,
): SqlStatement {
  const statement = selected(selection)
  statement.where(`c.end_period_ts < ${statement.addInstant(range.toMs)}`)
  if (start.key === null) {
    statement.where(`c.end_period_ts >= ${statement.addInstant(range.fromMs)}`)
  } else {
    const { endMs, marketTicker } = start.key
    const after = `(${statement.addInstant(endMs)}, ${statement.add(marketTicker, 'text')})`
    statement.where(`(c.end_period_ts, c.market_ticker) > ${after}`)
  }
  return statement.build(
    `SELECT ${columns} FROM candles c ${statement.whereClause} ORDER BY c.end_period_ts, c.market_ticker` +
      ` LIMIT ${statement.add(start.limit, 'int8')} OFFSET ${statement.add(start.offset, 'int8')}`,
  )
}

/** A market that may trade around a window; one row without a market tells the newest generation of the partitions. */
export interface MarketAround {
  readonly market_ticker: string | null
  readonly series_ticker: string
  /** Whether its life reaches into the window or over it. */
  readonly overlaps: boolean
  readonly generation: bigint
}

/** What `marketsAround` looks for besides the markets whose life in the store overlaps the window. */
export interface LivesBeside {
  /** Lives that end earlier than this do not count. Milliseconds since the epoch. */
  readonly earliestMs: number
  /** Series whose lives before the window are asked for too. */
  readonly before: readonly string[]
  /** Series whose lives behind the window are asked for too. */
  readonly behind: readonly string[]
}

/** The markets whose candles in the store may surround a window or lie in it, found by their lives and not by candles. */
export function marketsAround(
  selection: CandleSelection,
  range: CandleRange,
  { earliestMs, before, behind }: LivesBeside,
): SqlStatement {
  const statement = selectedBy(selection, 'l')
  const [from, to] = [statement.addInstant(range.fromMs), statement.addInstant(range.toMs)]
  // Apart from one another, since an index serves each of them and none all of them together.
  const lives = (overlaps: boolean, condition: string): string =>
    `SELECT l.market_ticker, l.series_ticker, ${overlaps} AS overlaps, 0::int8 AS generation` +
    ` FROM candle_lives l ${statement.whereClause} AND ${condition}`
  const found = [lives(true, `l.life && tstzrange(${from}, ${to})`)]
  const ofSeries = (series: readonly string[]): string =>
    `l.series_ticker = ANY (${statement.addList(series)})`
  if (before.length > 0) {
    const sinceEarliest = `upper(l.life) > ${statement.addInstant(earliestMs)}`
    found.push(lives(false, `${ofSeries(before)} AND upper(l.life) <= ${from} AND ${sinceEarliest}`))
  }
  if (behind.length > 0) found.push(lives(false, `${ofSeries(behind)} AND lower(l.life) >= ${to}`))
  found.push(
    `SELECT NULL, '', false, coalesce(max(generation), 0) FROM lake_manifest WHERE dataset = 'candles'`,
  )
  return statement.build(found.join(' UNION ALL '))
}

/** One row of `fillBounds`. */
export interface FillBound {
  /** `last`: a market's last candle of all; `base`: its last one before the window; `generation`: see below. */
  readonly kind: 'last' | 'base' | 'generation'
  readonly market_ticker: string
  readonly series_ticker: string
  /** Milliseconds since the epoch. */
  readonly end_period_ts: number
  readonly close: number
  /** Of the row `generation`: the newest generation of the candles' partitions when all this was read. */
  readonly open_interest: bigint
}

/**
 * What a forward fill needs of some markets: the last candle of each at or after `fromMs`, and the last one of
 * [earliestMs, fromMs). One statement, because each costs a round trip.
 */
export function fillBounds(
  selection: CandleSelection,
  markets: readonly string[],
  { earliestMs, fromMs }: { readonly earliestMs: number; readonly fromMs: number },
): SqlStatement {
  const statement = selected(selection)
  const [earliest, from] = [statement.addInstant(earliestMs), statement.addInstant(fromMs)]
  const list = statement.addList(markets)
  const lastOf = (kind: FillBound['kind'], span: string): string =>
    `SELECT '${kind}' AS kind, found.* FROM unnest(${list}) AS wanted(market) CROSS JOIN LATERAL` +
    ` (SELECT market_ticker, series_ticker, end_period_ts, close, open_interest FROM candles c ${statement.whereClause}` +
    ` AND c.market_ticker = wanted.market AND ${span} ORDER BY c.end_period_ts DESC LIMIT 1) found`
  return statement.build(
    `${lastOf('last', `c.end_period_ts >= ${from}`)} UNION ALL` +
      ` ${lastOf('base', `c.end_period_ts >= ${earliest} AND c.end_period_ts < ${from}`)}` +
      ` UNION ALL SELECT 'generation', '', '', to_timestamp(0), 0, coalesce(max(generation), 0)` +
      ` FROM lake_manifest WHERE dataset = 'candles'`,
  )
}

function selected(selection: CandleSelection): StatementBuilder {
  return selectedBy(selection, 'c').where(IS_HOT)
}

/** The selection as conditions on candles or on their markets' lives, which share the names of columns. */
function selectedBy(selection: CandleSelection, rows: 'c' | 'l'): StatementBuilder {
  const statement = new StatementBuilder()
  statement.where(`${rows}.period_interval = ${statement.add(selection.interval, 'int4')}`)
  if (selection.marketTicker !== null) {
    statement.where(`${rows}.market_ticker = ${statement.add(selection.marketTicker, 'text')}`)
  }
  if (selection.eventTicker !== null) {
    statement.where(`${rows}.event_ticker = ${statement.add(selection.eventTicker, 'text')}`)
  }
  if (selection.seriesTickers !== null) {
    statement.where(`${rows}.series_ticker = ANY (${statement.addList(selection.seriesTickers)})`)
  }
  return statement
}
