// Responses with trades whose pages do not end, or only after very many: each run ends, and keeps the rows that it has read.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { KalshiTradeArchive } from '../../server/exchanges/kalshi/trade-archive.ts'
import { PolymarketTradeArchive } from '../../server/exchanges/polymarket/trade-archive.ts'
import type { IngestEvent } from '../../server/ingest/run-source.ts'
import { missingWindows } from '../../server/storage/cursor-store.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { randomTrades, rowOf } from '../trades/random-trades.ts'
import { backfillOnce, DAY, NEVER, seedMarkets } from '../trades/trade-exchange.ts'
import { readTrades } from '../trades/trade-rows.ts'

const file = storeOfThisFile()
const options = { baseUrl: NEVER, userAgent: 'test' }
const PAGES_MAX = 10_000

test('a response whose cursor is always new ends with an error, and its rows are read until then', async () => {
  const { signal } = new AbortController()
  for (const step of [0, 1]) {
    let at = 0
    // The same row on every page, or always another one.
    class Kalshi extends KalshiTradeArchive {
      override object = async (path: string) =>
        path.includes('cutoff')
          ? { trades_created_ts: new Date(DAY.fromMs).toISOString() }
          : { trades: [{ trade_id: String(step * at) }], cursor: String(++at) }
    }
    class Polymarket extends PolymarketTradeArchive {
      override object = async () => ({
        data: [{ size: step * at }],
        pagination: { has_more: true, next_cursor: String(++at) },
      })
    }
    for (const archive of [new Kalshi(options), new Polymarket(options)]) {
      at = 0
      let [rowCount, stepCount] = [0, 0]
      const read = async (): Promise<void> => {
        for await (const { rows } of archive.steps(['0xaa'], DAY, signal)) {
          rowCount += rows.length
          stepCount += 1
          assert.ok(at <= 2 * PAGES_MAX, 'the walk ends')
        }
      }
      await assert.rejects(read(), /trades do not end after 10000 pages/)
      // Each step repeats the last page of the step before.
      assert.deepEqual([at, rowCount - (stepCount - 1)], [PAGES_MAX, PAGES_MAX])
      await archive.close()
    }
  }
})

test('a read that ends at the limit of its pages continues in the next run', async (t) => {
  const { postgres } = file.store
  const lake = join(await temporaryDirectory(t), 'lake')
  await seedMarkets(lake, 'polymarket', postgres)
  const trade = { ...randomTrades('polymarket', 7, 1)[0]!, market: '0xaa:11' }
  const rowCount = PAGES_MAX + 100
  let asked = 0
  class Long extends PolymarketTradeArchive {
    override object = async (path: string) => {
      asked += 1
      const query = new URL(path, NEVER).searchParams
      if (query.get('condition')?.includes('0xbb')) return { data: [], pagination: { has_more: false } }
      const at = Number(query.get('cursor') ?? 0)
      const us = BigInt(DAY.toMs - 1000 * (at + 1)) * 1000n
      return {
        data: [rowOf('polymarket', { ...trade, us, id: String(at) })],
        pagination: { has_more: at + 1 < rowCount, next_cursor: String(at + 1) },
      }
    }
  }
  const run = async (): Promise<string[]> => {
    const problems: string[] = []
    const onEvent = (event: IngestEvent): void => {
      if (event.kind === 'rejected') problems.push(...event.problems)
    }
    await backfillOnce(new Long(options), lake, 'polymarket', postgres, { onEvent })
    return problems
  }
  const isComplete = async (): Promise<boolean> => {
    const cursor = { source: 'polymarket-trades', scope: '0xaa' }
    return (await missingWindows(postgres, cursor, DAY, DAY.toMs)).length === 0
  }
  const problems = await run()
  assert.match(problems.join('\n'), /^0xaa: .*trades do not end after 10000 pages/)
  assert.deepEqual([(await readTrades(lake, 'polymarket')).length, await isComplete()], [PAGES_MAX, false])
  const before = asked
  assert.deepEqual(await run(), [])
  assert.deepEqual([(await readTrades(lake, 'polymarket')).length, await isComplete()], [rowCount, true])
  // From the last page of the first run on.
  assert.equal(asked - before, rowCount - PAGES_MAX + 1)
})
