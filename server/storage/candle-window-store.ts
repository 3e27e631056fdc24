// Which candles of the markets are complete. Completion is stored per market, over the time in which its candles can end, and is
// compared with the current catalogue: a new market, or one that traded longer than was known, has missing windows at the next
// request. The exchange shows some candles days late, so a settled market becomes missing as a whole a few more times, at growing
// intervals. A candle belongs to the period that it covers: windows hold the ends after `fromMs` up to and including `toMs`.

import { instantValue, rawSql, type Sql, sql } from '../../shared/sql/statement.ts'
import { recordset, writeRows } from './bulk-write.ts'
import type { TimeWindow } from './cursor-store.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** Days after a market's settlement at which its candles are requested once more. */
const LATE_LOOK_DAYS = [1, 3, 7]
/** A running collector takes these looks for this many days after settlement; later ones are left to a backfill. */
const LATE_LOOKS_END_DAYS = 9

/** A part of a market's life whose candles were not fetched. */
export interface MissingCandles extends MarketWindow {
  readonly eventTicker: string
  readonly seriesTicker: string
  /** Null while the market is not known to be settled. */
  readonly settledAtMs: number | null
}

/** A market and a window of its candles' ends. */
export interface MarketWindow extends TimeWindow {
  readonly ticker: string
  /** The late looks that were due when the window was found missing. */
  readonly look: number
}

/**
 * The candles that a window lacks for the markets of a series, by market and time. A look that is due at `nowMs` makes a market
 * missing; null ignores late looks.
 */
export function missingCandles(
  postgres: Postgres,
  seriesTicker: string,
  window: TimeWindow,
  nowMs: number | null,
  signal?: AbortSignal,
): Promise<readonly MissingCandles[]> {
  return readMissing(postgres, sql`series_ticker = ${seriesTicker}`, window, nowMs, signal)
}

/** The same for every market settled lately, a day or more ago. */
export function missingOfLateLooks(
  postgres: Postgres,
  window: TimeWindow,
  nowMs: number,
  signal: AbortSignal,
): Promise<readonly MissingCandles[]> {
  const [now, first] = [instantValue(nowMs), rawSql(`interval '${LATE_LOOK_DAYS[0]} day'`)]
  const end = rawSql(`interval '${LATE_LOOKS_END_DAYS} days'`)
  // The condition on the close is for the index: markets are settled after it.
  const condition = sql`settlement_ts <= ${now} - ${first} AND settlement_ts > ${now} - ${end}
    AND close_time >= ${instantValue(window.fromMs)}`
  return readMissing(postgres, condition, window, nowMs, signal)
}

async function readMissing(
  postgres: Postgres,
  condition: Sql,
  window: TimeWindow,
  nowMs: number | null,
  signal: AbortSignal | undefined,
): Promise<readonly MissingCandles[]> {
  const [from, to] = [instantValue(window.fromMs), instantValue(window.toMs)]
  const now = nowMs === null ? rawSql("'-infinity'") : instantValue(nowMs)
  const lookDays = rawSql(`'{${LATE_LOOK_DAYS.join(',')}}'::int4[]`)
  return await postgres.run<MissingCandles>(
    sql`
      SELECT ticker, event_ticker AS "eventTicker", series_ticker AS "seriesTicker",
        settlement_ts AS "settledAtMs", look, lower(missing) AS "fromMs", upper(missing) AS "toMs"
      FROM (
        SELECT *, greatest(open_time, ${from}) AS life_from, least(close_time + interval '1 day', ${to}) AS life_to,
          (SELECT count(*)::int4 FROM unnest(${lookDays}) AS days
            WHERE settlement_ts + days * interval '1 day' <= ${now}) AS look
        FROM markets WHERE ${condition}
      ) market,
      unnest(CASE WHEN life_from < life_to THEN tstzmultirange(tstzrange(life_from, life_to)) ELSE '{}' END
        - CASE WHEN candles_look < look THEN '{}' ELSE candles_completed END) AS missing
      ORDER BY ticker, missing`,
    { signal },
  )
}

const WINDOW_TYPES = {
  market_ticker: 'text',
  look: 'int4',
  from_ts: 'timestamptz',
  to_ts: 'timestamptz',
} as const
const CHANGED =
  `(SELECT market_ticker, max(look) AS look, range_agg(tstzrange(from_ts, to_ts)) AS ranges` +
  ` FROM ${recordset(WINDOW_TYPES)} GROUP BY market_ticker ORDER BY market_ticker) changed`
// Windows completed by an earlier look do not count for a later one.
const COMPLETE = `
  UPDATE markets SET candles_look = changed.look,
    candles_completed = changed.ranges + CASE WHEN candles_look < changed.look THEN '{}' ELSE candles_completed END
  FROM ${CHANGED} WHERE ticker = changed.market_ticker AND candles_look <= changed.look`
const REOPEN = `
  UPDATE markets SET candles_completed = candles_completed - changed.ranges
  FROM ${CHANGED} WHERE ticker = changed.market_ticker`

/** Records that the candles of some markets' windows were fetched. Call it in the transaction that writes them. */
export async function completeCandles(
  transaction: StoreTransaction,
  windows: readonly MarketWindow[],
): Promise<void> {
  await writeRows(transaction, COMPLETE, windows.map(rowOf), WINDOW_TYPES)
}

/** Makes some markets' windows missing again. */
export async function reopenCandles(
  transaction: StoreTransaction,
  windows: readonly Omit<MarketWindow, 'look'>[],
): Promise<void> {
  const rows = windows.map((window) => rowOf({ ...window, look: 0 }))
  await writeRows(transaction, REOPEN, rows, WINDOW_TYPES)
}

function rowOf({ ticker, look, fromMs, toMs }: MarketWindow): object {
  return { market_ticker: ticker, look, from_ts: fromMs, to_ts: toMs }
}
