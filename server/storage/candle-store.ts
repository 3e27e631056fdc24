// Recent traded candles. Writing replaces by key: a candle that is still forming is written again and again. Reading
// is for this process's own use; request handlers run the statements of shared/sql/candle-queries.ts in workers.

import { STORE_READ_BATCH_ROWS } from '../../shared/limits.ts'
import {
  type CandleRange,
  candleRead,
  type CandleSelection,
  STORED_CANDLE_COLUMNS,
  type StoredCandle,
} from '../../shared/sql/candle-queries.ts'
import { type KeysetOptions, keysetPages } from '../../shared/sql/keyset-pages.ts'
import { assignments, bulkStatement, differs, lastOfEachKey, recordset, writeBatches } from './bulk-write.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** Batches of STORE_READ_BATCH_ROWS by default. */
export type ReadOptions = Partial<KeysetOptions>

const COLUMNS = Object.keys(STORED_CANDLE_COLUMNS)
const NAMES = COLUMNS.join(', ')
const VALUES = COLUMNS.slice(5)

const UPSERT = `
  INSERT INTO candles (${NAMES})
  SELECT ${NAMES} FROM ${recordset('written', STORED_CANDLE_COLUMNS)}
  ORDER BY market_ticker, period_interval, end_period_ts
  ON CONFLICT (market_ticker, period_interval, end_period_ts) DO UPDATE
  SET ${assignments(VALUES)}, written_at = clock_timestamp()
  WHERE ${differs('candles', VALUES)}
  RETURNING 1`

/** Writes candles, of several with one key the last, and returns how many were new or changed. */
export async function writeCandles(
  transaction: StoreTransaction,
  candles: readonly StoredCandle[],
): Promise<number> {
  let changedCount = 0
  for (const batch of writeBatches(lastOfEachKey(candles, candleKey))) {
    changedCount += (await transaction.run(bulkStatement(UPSERT, batch, STORED_CANDLE_COLUMNS))).length
  }
  if (changedCount > 0) transaction.markChanged('candles')
  return changedCount
}

/** The hot candles of a range by (end_period_ts, market_ticker), in batches. */
export function readCandles(
  postgres: Postgres,
  selection: CandleSelection,
  range: CandleRange,
  options: ReadOptions = {},
): AsyncGenerator<readonly StoredCandle[], void, void> {
  return keysetPages(
    (statement) => postgres.run(statement, { signal: options.signal }),
    candleRead(selection, range),
    { batchUnits: STORE_READ_BATCH_ROWS, ...options },
  )
}

function candleKey(candle: StoredCandle): string {
  return `${candle.market_ticker} ${candle.period_interval} ${candle.end_period_ts}`
}
