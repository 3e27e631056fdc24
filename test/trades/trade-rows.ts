// Reads trades files with DuckDB.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { tradesSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { Trade } from '../../shared/trades-v1.ts'
import { withDuckDb } from '../support/duckdb.ts'

/** All trades of a lake, by the names of their files and in the order of their rows. */
export async function readTrades(lake: string, source: LobSource): Promise<Trade[]> {
  const root = tradesSourceDirectory(lake, source)
  const names = await readdir(root, { recursive: true }).catch(() => [])
  const paths = names.filter((name) => name.endsWith('.parquet')).toSorted()
  return await withDuckDb(async (connection) => {
    const trades: Trade[] = []
    for (const name of paths) {
      const path = join(root, name)
      const reader = await connection.runAndReadAll(
        `SELECT ts, recv_ts, market_id, trade_id, price, qty, aggressor, block, origin FROM read_parquet('${path}')`,
      )
      for (const row of reader.getRows()) {
        const [ts, recvTs, marketId, tradeId, price, qty, aggressor, block, origin] = row
        const trade = { ts, recvTs, marketId, tradeId, price, qty: Number(qty), aggressor, block, origin }
        trades.push(trade as unknown as Trade)
      }
    }
    return trades
  })
}
