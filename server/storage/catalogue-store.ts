// The exchange's catalogue: series and their markets. A write stores the exchange's newest answer; an older one (REST responses are
// cached for seconds) never overwrites a newer one. Instants are milliseconds since the epoch, prices 1/10000 dollar.

import { instantValue, sql } from '../../shared/sql/statement.ts'
import type { StoredRow } from '../../shared/sql/stored-row.ts'
import { assignments, differs, oneOfEachKey, recordset, writeRows } from './bulk-write.ts'
import type { StoreTransaction } from './store-transaction.ts'

const SERIES_TYPES = {
  ticker: 'text',
  measure_type: 'text',
  title: 'text',
  /** Null if the series belongs to no known station. */
  station_code: 'text',
  category: 'text',
  frequency: 'text',
  tags: 'jsonb',
  active: 'boolean',
  settlement_sources: 'jsonb',
  contract_url: 'text',
  fee_type: 'text',
  fee_multiplier: 'float8',
  last_seen_at: 'timestamptz',
} as const

const MARKET_TYPES = {
  ticker: 'text',
  event_ticker: 'text',
  series_ticker: 'text',
  /** The market's own station; null means that of its series. */
  station_code: 'text',
  status: 'text',
  /** Empty until the market is determined. */
  result: 'text',
  title: 'text',
  open_time: 'timestamptz',
  close_time: 'timestamptz',
  market_type: 'text',
  yes_sub_title: 'text',
  no_sub_title: 'text',
  strike_type: 'text',
  floor_strike: 'float8',
  cap_strike: 'float8',
  created_time: 'timestamptz',
  updated_time: 'timestamptz',
  expected_expiration_time: 'timestamptz',
  latest_expiration_time: 'timestamptz',
  settlement_timer_seconds: 'int4',
  settlement_value: 'int4',
  settlement_ts: 'timestamptz',
  expiration_value: 'text',
  can_close_early: 'boolean',
  price_level_structure: 'text',
  price_ranges: 'jsonb',
  rules_primary: 'text',
  rules_secondary: 'text',
  /** Contracts traded so far, 1/100. */
  volume: 'int8',
  last_seen_at: 'timestamptz',
} as const

/** A temperature series (contract.md 22) with the exchange's other fields. */
export interface SeriesRecord extends StoredRow<
  typeof SERIES_TYPES,
  'station_code' | 'contract_url' | 'fee_type' | 'fee_multiplier'
> {
  readonly tags: readonly string[]
}

type RequiredOfMarket =
  | 'ticker'
  | 'event_ticker'
  | 'series_ticker'
  | 'status'
  | 'result'
  | 'close_time'
  | 'last_seen_at'

/** A single strike with all fields of the exchange. */
export type MarketRecord = StoredRow<
  typeof MARKET_TYPES,
  Exclude<keyof typeof MARKET_TYPES, RequiredOfMarket>
>

const SERIES_NAMES = Object.keys(SERIES_TYPES)
const MARKET_NAMES = Object.keys(MARKET_TYPES)
const SERIES_CONTENT = SERIES_NAMES.slice(1, -1)
const MARKET_CONTENT = MARKET_NAMES.slice(1, -2)

// last_seen_at changes at every look; only a change of content counts.
const UPSERT_SERIES = `
  INSERT INTO series (${SERIES_NAMES.join(', ')})
  SELECT ${SERIES_NAMES.join(', ')} FROM ${recordset(SERIES_TYPES)} ORDER BY ticker
  ON CONFLICT (ticker) DO UPDATE SET ${assignments(SERIES_NAMES.slice(1))},
    written_at = CASE WHEN ${differs('series', SERIES_CONTENT)} THEN now() ELSE series.written_at END
  WHERE excluded.last_seen_at >= series.last_seen_at AND ${differs('series', SERIES_NAMES.slice(1))}
  RETURNING written_at = now() AS is_changed`

// last_seen_at changes at every look, and the volume with every trade; only a change of content counts.
const UPSERT_MARKETS = `
  INSERT INTO markets (${MARKET_NAMES.join(', ')})
  SELECT ${MARKET_NAMES.join(', ')} FROM ${recordset(MARKET_TYPES)} ORDER BY ticker
  ON CONFLICT (ticker) DO UPDATE SET ${assignments(MARKET_NAMES.slice(1))},
    written_at = CASE WHEN ${differs('markets', MARKET_CONTENT)} THEN now() ELSE markets.written_at END
  WHERE excluded.last_seen_at >= markets.last_seen_at
    AND (excluded.updated_time >= markets.updated_time) IS NOT FALSE
  RETURNING written_at = now() AS is_changed`

interface Written {
  readonly is_changed: boolean
}

/** Writes series and returns how many are new or changed. A new last_seen_at is not a change, although readers see it. */
export async function writeSeries(
  transaction: StoreTransaction,
  series: readonly SeriesRecord[],
): Promise<number> {
  const rows = oneOfEachKey(series, tickerOf)
  const written = await writeRows<Written>(transaction, UPSERT_SERIES, rows, SERIES_TYPES)
  if (written.length > 0) transaction.markChanged('series')
  return written.filter(({ is_changed }) => is_changed).length
}

/** Marks active series inactive if they were not seen since an instant, and returns their tickers. */
export async function retireSeries(transaction: StoreTransaction, notSeenSinceMs: number): Promise<string[]> {
  const rows = await transaction.run<{ readonly ticker: string }>(sql`
    UPDATE series SET active = false, written_at = clock_timestamp()
    WHERE active AND last_seen_at < ${instantValue(notSeenSinceMs)} RETURNING ticker`)
  if (rows.length > 0) transaction.markChanged('series')
  return rows.map(tickerOf).toSorted()
}

/** Writes markets and returns how many are new or changed. A new last_seen_at or volume is not a change. */
export async function writeMarkets(
  transaction: StoreTransaction,
  markets: readonly MarketRecord[],
): Promise<number> {
  const rows = oneOfEachKey(markets, tickerOf)
  const written = await writeRows<Written>(transaction, UPSERT_MARKETS, rows, MARKET_TYPES)
  const changedCount = written.filter(({ is_changed }) => is_changed).length
  if (changedCount > 0) transaction.markChanged('markets')
  return changedCount
}

function tickerOf(row: { readonly ticker: string }): string {
  return row.ticker
}
