// The exchange's names of markets whose ids do not show them: the question, and the outcome that pays.

import { listValue, sql } from '../../shared/sql/statement.ts'
import { assignments, bulkStatement, oneOfEachKey, recordset } from './bulk-write.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** In the order of the table. */
const COLUMNS = ['source', 'series', 'market_id', 'question', 'outcome'] as const
const TYPES = Object.fromEntries(COLUMNS.map((name) => [name, 'text']))

export type MarketName = Readonly<Record<(typeof COLUMNS)[number], string>>

const UPSERT = `
  INSERT INTO market_names SELECT * FROM ${recordset(TYPES)}
  ON CONFLICT (source, series, market_id) DO UPDATE SET ${assignments(['question', 'outcome'])}`

type Store = Pick<StoreTransaction, 'run'>

export async function writeMarketNames(store: Store, names: readonly MarketName[]): Promise<void> {
  const rows = oneOfEachKey(names, ({ source, series, market_id }) => `${source} ${series} ${market_id}`)
  if (rows.length > 0) await store.run(bulkStatement(UPSERT, rows, TYPES))
}

/** The names of some markets of a series. */
export function readMarketNames(
  store: Store,
  { source, series }: Pick<MarketName, 'source' | 'series'>,
  ids: readonly string[],
): Promise<readonly MarketName[]> {
  return store.run(sql`SELECT * FROM market_names
    WHERE source = ${source} AND series = ${series} AND market_id = ANY (${listValue(ids)})`)
}
