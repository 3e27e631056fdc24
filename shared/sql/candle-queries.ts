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
 * What a forward fill needs of the markets that traded at or after `fromMs`: the last candle of each, and the last one
 * before `fromMs`. One statement, because each costs a round trip.
 */
export function fillBounds(selection: CandleSelection, fromMs: number): SqlStatement {
  const statement = selected(selection)
  const from = statement.addInstant(fromMs)
  const conditions = statement.whereClause
  const values = 'market_ticker, series_ticker, end_period_ts, close, open_interest'
  return statement.build(
    `WITH last AS (SELECT DISTINCT ON (c.market_ticker) ${values} FROM candles c ${conditions}` +
      ` AND c.end_period_ts >= ${from} ORDER BY c.market_ticker, c.end_period_ts DESC),` +
      ` base AS (SELECT DISTINCT ON (c.market_ticker) ${values} FROM candles c ${conditions}` +
      ` AND c.end_period_ts < ${from} ORDER BY c.market_ticker, c.end_period_ts DESC)` +
      ` SELECT 'last' AS kind, ${values} FROM last UNION ALL SELECT 'base', ${values} FROM base` +
      ` UNION ALL SELECT 'generation', '', '', to_timestamp(0), 0, coalesce(max(generation), 0)` +
      ` FROM lake_manifest WHERE dataset = 'candles'`,
  )
}

function selected(selection: CandleSelection): StatementBuilder {
  const statement = new StatementBuilder()
  statement.where(`c.period_interval = ${statement.add(selection.interval, 'int4')}`)
  if (selection.marketTicker !== null) {
    statement.where(`c.market_ticker = ${statement.add(selection.marketTicker, 'text')}`)
  }
  if (selection.eventTicker !== null) {
    statement.where(`c.event_ticker = ${statement.add(selection.eventTicker, 'text')}`)
  }
  if (selection.seriesTickers !== null) {
    statement.where(`c.series_ticker = ANY (${statement.addList(selection.seriesTickers)})`)
  }
  return statement.where(IS_HOT)
}
