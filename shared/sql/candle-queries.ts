// The hot half of `/candles`: statements over the traded candles in the relational store. Filling, rolling up and rounding happen
// elsewhere.

import { hotRows, type InstantRange } from './hot-rows.ts'
import {
  instantValue,
  joinSql,
  listValue,
  rawSql,
  type Sql,
  type SqlStatement,
  sql,
  typedValue,
  whereAll,
} from './statement.ts'
import type { StoredRow } from './stored-row.ts'

/** Minutes of the stored intervals; the others are rolled up from 1. */
type StoredInterval = 1 | 60 | 1440

/** Every stored column of a candle: name and SQL type. */
export const STORED_CANDLE_COLUMNS = {
  market_ticker: 'text',
  event_ticker: 'text',
  series_ticker: 'text',
  /** Minutes. */
  period_interval: 'int4',
  end_period_ts: 'timestamptz',
  open: 'int4',
  high: 'int4',
  low: 'int4',
  close: 'int4',
  volume: 'int8',
  open_interest: 'int8',
} as const

/** A traded candle. Prices are 1/10000 dollar, volume and open interest 1/100 contract. */
export interface StoredCandle extends StoredRow<typeof STORED_CANDLE_COLUMNS> {
  readonly period_interval: StoredInterval
}

/** Selects markets: all conditions must hold. Null is no condition; an empty list matches nothing. */
export interface CandleSelection {
  readonly interval: StoredInterval
  readonly marketTicker: string | null
  readonly eventTicker: string | null
  /** One series, or those of a station. */
  readonly seriesTickers: readonly string[] | null
}

interface CandleKey {
  readonly endMs: number
  readonly marketTicker: string
}

/** By (end_period_ts, market_ticker). */
export const {
  read: plannedCandleRead,
  count: candleCount,
  isHot: IS_HOT,
} = hotRows<CandleSelection, StoredCandle, CandleKey>({
  dataset: 'candles',
  columns: STORED_CANDLE_COLUMNS,
  scope: 'series_ticker',
  instant: 'end_period_ts',
  order: ['end_period_ts', 'market_ticker'],
  conditionsOf: (selection) => selectedBy(selection, 'candles'),
  keyOf: (row) => ({ endMs: row.end_period_ts, marketTicker: row.market_ticker }),
  valuesOf: ({ endMs, marketTicker }) => sql`${instantValue(endMs)}, ${marketTicker}`,
})

/** A market that may trade around a window. One row without a market has the newest generation of the partitions. */
export interface MarketAround {
  readonly market_ticker: string | null
  readonly series_ticker: string
  /** Whether its life overlaps the window. */
  readonly overlaps: boolean
  readonly generation: bigint
}

/** The markets that `marketsAround` finds besides those whose life in the store overlaps the window. */
export interface LivesBeside {
  /** Lives that end earlier are ignored. Milliseconds since the epoch. */
  readonly earliestMs: number
  /** Series whose lives before the window are included. */
  readonly before: readonly string[]
  /** Series whose lives after the window are included. */
  readonly behind: readonly string[]
}

/** The markets whose stored candles may be in or around a window, found by their lives instead of their candles. */
export function marketsAround(
  selection: CandleSelection,
  range: InstantRange,
  { earliestMs, before, behind }: LivesBeside,
): SqlStatement {
  const [from, to] = [instantValue(range.fromMs), instantValue(range.toMs)]
  // Separate SELECTs, since an index serves each of them, but none serves all conditions together.
  const lives = (overlaps: boolean, condition: Sql): Sql =>
    sql`SELECT l.market_ticker, l.series_ticker, ${rawSql(String(overlaps))} AS overlaps, 0::int8 AS generation
      FROM candle_lives l ${whereAll(...selectedBy(selection, 'l'), condition)}`
  const found = [lives(true, sql`l.life && tstzrange(${from}, ${to})`)]
  if (before.length > 0) {
    const sinceEarliest = sql`upper(l.life) > ${instantValue(earliestMs)}`
    found.push(lives(false, sql`${ofSeries(before)} AND upper(l.life) <= ${from} AND ${sinceEarliest}`))
  }
  if (behind.length > 0) found.push(lives(false, sql`${ofSeries(behind)} AND lower(l.life) >= ${to}`))
  found.push(
    sql`SELECT NULL, '', false, coalesce(max(generation), 0) FROM lake_manifest WHERE dataset = 'candles'`,
  )
  return joinSql(found, ' UNION ALL ')
}

function ofSeries(series: readonly string[]): Sql {
  return sql`l.series_ticker = ANY (${listValue(series)})`
}

/** One row of `fillBounds`. */
export interface FillBound {
  /** `last`: a market's last candle; `base`: its last candle before the window; `generation`: see `open_interest`. */
  readonly kind: 'last' | 'base' | 'generation'
  readonly market_ticker: string
  readonly series_ticker: string
  /** Milliseconds since the epoch. */
  readonly end_period_ts: number
  readonly close: number
  /** In the row `generation`: the newest generation of the candles' partitions at the time of the read. */
  readonly open_interest: bigint
}

/**
 * The inputs of a forward fill: each market's last candle at or after `fromMs`, and its last one in [earliestMs, fromMs). One
 * statement, because each statement costs a round trip.
 */
export function fillBounds(
  selection: CandleSelection,
  markets: readonly string[],
  { earliestMs, fromMs }: { readonly earliestMs: number; readonly fromMs: number },
): SqlStatement {
  const [earliest, from] = [instantValue(earliestMs), instantValue(fromMs)]
  const lastOf = (kind: FillBound['kind'], span: Sql): Sql => {
    const conditions = whereAll(
      ...selectedBy(selection, 'candles'),
      IS_HOT,
      sql`market_ticker = wanted.market`,
      span,
    )
    return sql`SELECT ${rawSql(`'${kind}'`)} AS kind, found.* FROM unnest(${listValue(markets)}) AS wanted(market)
      CROSS JOIN LATERAL (SELECT market_ticker, series_ticker, end_period_ts, close, open_interest FROM candles
        ${conditions} ORDER BY end_period_ts DESC LIMIT 1) found`
  }
  return sql`${lastOf('last', sql`end_period_ts >= ${from}`)}
    UNION ALL ${lastOf('base', sql`end_period_ts >= ${earliest} AND end_period_ts < ${from}`)}
    UNION ALL SELECT 'generation', '', '', to_timestamp(0), 0, coalesce(max(generation), 0)
      FROM lake_manifest WHERE dataset = 'candles'`
}

/** The selection as conditions on candles or on their markets' lives, which have the same column names. */
function selectedBy(
  { interval, marketTicker, eventTicker, seriesTickers }: CandleSelection,
  rows: 'candles' | 'l',
): (Sql | false)[] {
  const of = rawSql(rows)
  return [
    sql`${of}.period_interval = ${typedValue(interval, 'int4')}`,
    marketTicker !== null && sql`${of}.market_ticker = ${marketTicker}`,
    eventTicker !== null && sql`${of}.event_ticker = ${eventTicker}`,
    seriesTickers !== null && sql`${of}.series_ticker = ANY (${listValue(seriesTickers)})`,
  ]
}
