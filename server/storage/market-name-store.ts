// What an exchange calls markets whose identifiers do not say it: the question that is asked, and the outcome that pays.

import { assignments, bulkStatement, lastOfEachKey, recordset } from './bulk-write.ts'
import type { StoreTransaction } from './store-transaction.ts'

export interface MarketName {
  readonly source: string
  readonly series: string
  readonly market_id: string
  readonly question: string
  readonly outcome: string
}

const TYPES = {
  source: 'text',
  series: 'text',
  market_id: 'text',
  question: 'text',
  outcome: 'text',
} as const satisfies Record<keyof MarketName, string>
const UPSERT = `
  INSERT INTO market_names SELECT * FROM ${recordset('written', TYPES)}
  ON CONFLICT (source, series, market_id) DO UPDATE SET ${assignments(['question', 'outcome'])}`

type Store = Pick<StoreTransaction, 'run'>

export async function writeMarketNames(store: Store, names: readonly MarketName[]): Promise<void> {
  const rows = lastOfEachKey(names, ({ source, series, market_id }) => `${source} ${series} ${market_id}`)
  if (rows.length > 0) await store.run(bulkStatement(UPSERT, rows, TYPES))
}

/** The names of a series' markets. */
export function readMarketNames(
  store: Store,
  source: string,
  series: string,
): Promise<readonly MarketName[]> {
  const text =
    'SELECT * FROM market_names WHERE source = $1::text AND series = $2::text ORDER BY market_id LIMIT 10000'
  return store.run({ text, parameters: [source, series] })
}
