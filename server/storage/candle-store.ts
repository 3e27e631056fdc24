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

const COLUMN_TYPES = {
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

const NAMES = STORED_CANDLE_COLUMNS.join(', ')
const VALUES = STORED_CANDLE_COLUMNS.slice(5)

const UPSERT = `
  INSERT INTO candles (${NAMES})
  SELECT ${NAMES} FROM ${recordset('written', COLUMN_TYPES)}
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
    changedCount += (await transaction.run(bulkStatement(UPSERT, batch, COLUMN_TYPES))).length
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
