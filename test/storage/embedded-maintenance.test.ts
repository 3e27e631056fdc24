import assert from 'node:assert/strict'
import { test } from 'node:test'
import { maintainTables } from '../../server/storage/embedded-maintenance.ts'
import { plannedCandleRead } from '../../shared/sql/candle-queries.ts'
import { storeOfThisFile } from '../support/postgres.ts'

const file = storeOfThisFile()

test('tables that outgrew their statistics are analyzed once, and then pages use the index', async () => {
  const { postgres } = file.store
  await postgres.run({
    text: `INSERT INTO candles (market_ticker, event_ticker, series_ticker, period_interval, end_period_ts, open, high,
        low, close, volume, open_interest)
      SELECT 'KXHIGHNY-26JUL01-T' || market, 'KXHIGHNY-26JUL01', 'KXHIGHNY', 1,
        timestamptz '2026-07-01Z' + minute * interval '1 minute', 1, 1, 1, 1, 1, 1
      FROM generate_series(1, 12) market, generate_series(1, 1440) minute`,
    parameters: [],
  })
  assert.ok((await maintainTables(postgres)).includes('candles'))
  assert.ok(!(await maintainTables(postgres)).includes('candles'))

  const selection = { interval: 1, marketTicker: null, eventTicker: null, seriesTickers: null } as const
  const range = { fromMs: Date.UTC(2026, 6, 1), toMs: Date.UTC(2026, 6, 2) }
  const key = { endMs: Date.UTC(2026, 6, 1, 12), marketTicker: 'KXHIGHNY-26JUL01-T5' }
  const page = plannedCandleRead(selection, range).statementFor({ key, offset: 0, limit: 1_000 })
  const plan = await postgres.run<Record<string, string>>({
    text: `EXPLAIN ${page.text}`,
    parameters: page.parameters,
  })
  const text = plan.map((row) => Object.values(row)[0]).join('\n')
  assert.match(text, /Index Scan using candles_by_time/)
  assert.doesNotMatch(text, /Sort/)
})

test('many dead rows are vacuumed', async () => {
  const { postgres } = file.store
  const pages = async (): Promise<unknown> =>
    (
      await postgres.run<{ n: bigint }>({ text: `SELECT pg_relation_size('candles') AS n`, parameters: [] })
    )[0]?.n
  await postgres.run({ text: 'DELETE FROM candles', parameters: [] })
  // The server counts dead rows with a delay.
  for (let attempt = 0; attempt < 100 && (await pages()) !== 0n; attempt += 1) {
    await maintainTables(postgres)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.equal(await pages(), 0n)
})
