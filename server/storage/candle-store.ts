// Recent traded candles. A write replaces the row of the same key, because a candle is written repeatedly while it forms. The
// statements of shared/sql/candle-queries.ts read them.

import { STORED_CANDLE_COLUMNS, type StoredCandle } from '../../shared/sql/candle-queries.ts'
import { assignments, differs, oneOfEachKey, recordset, writeRows } from './bulk-write.ts'
import type { StoreTransaction } from './store-transaction.ts'

const COLUMNS = Object.keys(STORED_CANDLE_COLUMNS)
const NAMES = COLUMNS.join(', ')
const VALUES = COLUMNS.slice(5)

const UPSERT = `
  INSERT INTO candles (${NAMES})
  SELECT ${NAMES} FROM ${recordset(STORED_CANDLE_COLUMNS)}
  ORDER BY market_ticker, period_interval, end_period_ts
  ON CONFLICT (market_ticker, period_interval, end_period_ts) DO UPDATE
  SET ${assignments(VALUES)}, written_at = clock_timestamp()
  WHERE ${differs('candles', VALUES)}
  RETURNING 1`

/** Writes candles and returns how many were new or changed. Of several with one key, the last counts. */
export async function writeCandles(
  transaction: StoreTransaction,
  candles: readonly StoredCandle[],
): Promise<number> {
  const rows = oneOfEachKey(candles, candleKey)
  const changed = await writeRows(transaction, UPSERT, rows, STORED_CANDLE_COLUMNS)
  if (changed.length > 0) transaction.markChanged('candles')
  return changed.length
}

function candleKey(candle: StoredCandle): string {
  return `${candle.market_ticker} ${candle.period_interval} ${candle.end_period_ts}`
}
