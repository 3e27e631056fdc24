// What is complete of the markets' candles. Completion is kept market by market, over the time in which a market's candles
// can end, and follows from the catalogue as it is now: a market that was not known, or that traded longer than was
// known, has missing windows whenever somebody asks.

import { StatementBuilder } from '../../shared/sql/statement.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { bulkStatement, recordset, writeBatches } from './bulk-write.ts'
import type { TimeWindow } from './cursor-store.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** The last daily candle of a market ends up to a day after its close; that instant is included. */
const LAST_CANDLE_MS = MS_PER_DAY + 60_000

/** A part of a market's life whose candles were not fetched. `fromMs` inclusive, `toMs` exclusive: ends of candles. */
export interface MissingCandles extends TimeWindow {
  readonly ticker: string
  readonly eventTicker: string
  readonly seriesTicker: string
  /** Null while the market is not known to be settled. */
  readonly settledAtMs: number | null
}

interface Row {
  readonly ticker: string
  readonly event_ticker: string
  readonly series_ticker: string
  readonly settlement_ts: number | null
  readonly from_ts: number
  readonly to_ts: number
}

/** A market and a window of its candles' ends. */
export interface MarketWindow extends TimeWindow {
  readonly ticker: string
}

/** What a window lacks of the candles of a series' markets, by market and time. */
export async function missingCandles(
  postgres: Postgres,
  seriesTicker: string,
  window: TimeWindow,
  signal?: AbortSignal,
): Promise<readonly MissingCandles[]> {
  const statement = new StatementBuilder()
  const from = statement.addInstant(window.fromMs)
  const to = statement.addInstant(window.toMs)
  const afterClose = `close_time + ${statement.add(LAST_CANDLE_MS, 'int8')} * interval '1 millisecond'`
  const rows = await postgres.run<Row>(
    statement.build(`
      SELECT ticker, event_ticker, series_ticker, settlement_ts,
        lower(missing) AS from_ts, upper(missing) AS to_ts
      FROM (
        SELECT *, greatest(open_time, ${from}) AS life_from, least(${afterClose}, ${to}) AS life_to
        FROM markets WHERE series_ticker = ${statement.add(seriesTicker, 'text')}
      ) market,
      unnest(CASE WHEN life_from < life_to THEN tstzmultirange(tstzrange(life_from, life_to)) ELSE '{}' END
        - candles_completed) AS missing
      ORDER BY ticker, missing`),
    { signal },
  )
  return rows.map((row) => ({
    ticker: row.ticker,
    eventTicker: row.event_ticker,
    seriesTicker: row.series_ticker,
    settledAtMs: row.settlement_ts,
    fromMs: row.from_ts,
    toMs: row.to_ts,
  }))
}

const WINDOW_TYPES = { market_ticker: 'text', from_ts: 'timestamptz', to_ts: 'timestamptz' } as const
const RANGES =
  `SELECT market_ticker, range_agg(tstzrange(from_ts, to_ts)) AS ranges` +
  ` FROM ${recordset('written', WINDOW_TYPES)} GROUP BY market_ticker ORDER BY market_ticker`
const COMPLETE = changeOf('+')
const REOPEN = changeOf('-')

function changeOf(operator: '+' | '-'): string {
  return (
    `UPDATE markets SET candles_completed = candles_completed ${operator} changed.ranges` +
    ` FROM (${RANGES}) changed WHERE ticker = changed.market_ticker`
  )
}

/** Notes that the candles of some markets' windows were fetched and are written by this transaction. */
export async function completeCandles(
  transaction: StoreTransaction,
  windows: readonly MarketWindow[],
): Promise<void> {
  for (const batch of writeBatches(windows)) {
    await transaction.run(bulkStatement(COMPLETE, batch.map(rowOf), WINDOW_TYPES))
  }
}

/** Makes some markets' windows missing again. */
export async function reopenCandles(
  transaction: StoreTransaction,
  windows: readonly MarketWindow[],
): Promise<void> {
  for (const batch of writeBatches(windows)) {
    await transaction.run(bulkStatement(REOPEN, batch.map(rowOf), WINDOW_TYPES))
  }
}

function rowOf({ ticker, fromMs, toMs }: MarketWindow): object {
  return { market_ticker: ticker, from_ts: fromMs, to_ts: toMs }
}
