import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { createSources } from '../../server/ingest/registry.ts'
import { backfillSource, pollSource } from '../../server/ingest/run-source.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { missingCandles } from '../../server/storage/candle-window-store.ts'
import type { TimeWindow } from '../../server/storage/cursor-store.ts'
import { migrate, readMigrations } from '../../server/storage/migrations.ts'
import { send, startRoutedUpstream } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { randomExchange, type RandomExchange, STORED_CANDLES } from '../support/random-exchange.ts'
import { worldConfig } from '../support/upstream-world.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const FIRST_MS = Date.parse('2026-09-10T00:00:00Z')
/** Markets of four days, so that the last ones are settled long before the last run. */
const LAST_MS = FIRST_MS + 4 * DAY_MS
const LATE_DAYS = 6

const file = storeOfThisFile()

beforeEach(async () => {
  await file.store.migrate()
  await command('TRUNCATE series, markets, candles, ingest_cursors')
})

function command<Row>(text: string): Promise<readonly Row[]> {
  return file.store.postgres.run<Row>({ text, parameters: [] })
}

/** A run of the command over everything until today. Returns the tickers whose candles it requested. */
async function startRuns(
  t: TestContext,
  exchange: RandomExchange,
): Promise<() => Promise<ReadonlySet<string>>> {
  const upstream = await startRoutedUpstream(t, (request) => exchange.answer(request, '/kalshi') ?? send(404))
  return async () => {
    const before = upstream.asked.length
    const clock = { nowMs: () => exchange.nowMs, sleep: async () => {} }
    const today = Math.floor(exchange.nowMs / DAY_MS) * DAY_MS
    const span: TimeWindow = { fromMs: FIRST_MS - 4 * DAY_MS, toMs: today + DAY_MS }
    const names = ['exchange-catalogue', 'exchange-candles'] as const
    const config = { ...worldConfig(upstream.baseUrl), kalshiRequestsPerSecond: 1_000 }
    for (const source of createSources(config, { names, http: { clock } })) {
      const { signal } = new AbortController()
      const outcome = await backfillSource(source, span, { postgres: file.store.postgres, clock, signal })
      assert.equal(outcome.errorCount, 0)
      await source.close()
    }
    const tickers = upstream.asked
      .slice(before)
      .map(({ url }) => /\/markets\/([^/]+)\/candlesticks/.exec(url)?.[1])
    return new Set(tickers.filter((ticker) => ticker !== undefined).map(decodeURIComponent))
  }
}

test('later runs fetch candles that the exchange publishes days late, with a bounded number of requests', async (t) => {
  const exchange = randomExchange(new SeededRandom(3, 'late'), FIRST_MS, LAST_MS, LATE_DAYS * 24)
  const late = exchange.markets.flatMap(({ trades }) =>
    trades.filter(({ endMs, toldMs }) => toldMs > endMs + 3 * DAY_MS),
  )
  assert.ok(late.length > 20, `${late.length} late trades`)
  const run = await startRuns(t, exchange)
  const lastSettledMs = Math.max(...exchange.markets.map(({ settledMs }) => settledMs))
  const looks = new Map<string, number>()
  for (exchange.nowMs = FIRST_MS + HOUR_MS; ; exchange.nowMs += DAY_MS) {
    const asked = await run()
    for (const { ticker, closes, settledMs } of exchange.markets.filter((each) => asked.has(each.ticker))) {
      // Its last candle ends up to a day after its close, and is settled two days later at a midnight.
      const firstDoneMs = Math.max((closes.at(-1)?.closeMs ?? 0) + 4 * DAY_MS, settledMs)
      if (exchange.nowMs > firstDoneMs) looks.set(ticker, (looks.get(ticker) ?? 0) + 1)
      assert.ok(exchange.nowMs < settledMs + 8 * DAY_MS, `${ticker} is asked for after its last look`)
    }
    if (exchange.nowMs > lastSettledMs + 7 * DAY_MS) break
  }
  const stored = (await command<{ readonly text: string }>(STORED_CANDLES)).map(({ text }) => text)
  const expected = [...exchange.candles(0, exchange.nowMs)]
  assert.deepEqual(stored.toSorted(), expected.toSorted())
  assert.ok(Math.max(...looks.values()) <= 3)
  assert.deepEqual(await run(), new Set())
})

test('a running collector fetches late candles without a backfill, one event a poll', async (t) => {
  const exchange = randomExchange(new SeededRandom(3, 'late'), FIRST_MS, LAST_MS, LATE_DAYS * 24)
  const upstream = await startRoutedUpstream(t, (request) => exchange.answer(request, '/kalshi') ?? send(404))
  const clock = { nowMs: () => exchange.nowMs, sleep: async () => {} }
  const config = { ...worldConfig(upstream.baseUrl), kalshiRequestsPerSecond: 1_000 }
  const names = ['exchange-catalogue', 'exchange-candles'] as const
  const sources = createSources(config, { names, http: { clock } })
  t.after(() => Promise.all(sources.map((source) => source.close())))
  const { signal } = new AbortController()
  const endMs = Math.max(...exchange.markets.map(({ settledMs }) => settledMs)) + 9 * DAY_MS
  let idlePolls = 0
  for (exchange.nowMs = FIRST_MS; exchange.nowMs <= endMs; exchange.nowMs += 4 * HOUR_MS) {
    for (const source of sources) {
      const outcome = await pollSource(source, { postgres: file.store.postgres, clock, signal })
      assert.equal(outcome.errorCount, 0)
      if (source.name !== 'exchange-candles') continue
      assert.ok(outcome.stepCount <= 2)
      if (outcome.stepCount === 1) idlePolls += 1
    }
  }
  const stored = (await command<{ readonly text: string }>(STORED_CANDLES)).map(({ text }) => text)
  assert.deepEqual(stored.toSorted(), [...exchange.candles(0, exchange.nowMs)].toSorted())
  assert.ok(idlePolls > 5, `${idlePolls} polls without a late look`)
})

test('dates that were settled long ago are requested once', async (t) => {
  const exchange = randomExchange(new SeededRandom(4, 'late'), FIRST_MS, LAST_MS)
  exchange.nowMs = LAST_MS + 60 * DAY_MS
  const run = await startRuns(t, exchange)
  assert.ok((await run()).size > 0)
  assert.deepEqual(await run(), new Set())
})

test('windows of an older version keep the same ends of candles', async () => {
  await command('DROP SCHEMA public CASCADE')
  await command('CREATE SCHEMA public')
  await migrate(file.store.postgres, (await readMigrations()).slice(0, 8))
  await command(`INSERT INTO series (ticker, measure_type, title, category, frequency, tags, active, last_seen_at)
    VALUES ('KXHIGHNY', 'high', 'x', 'x', 'daily', '[]', true, now())`)
  for (const [ticker, settled] of [
    ['OLD', '2026-09-12T12:00:00Z'],
    ['OPEN', null],
  ] as const) {
    await command(`INSERT INTO markets (ticker, event_ticker, series_ticker, status, result, last_seen_at, open_time,
        close_time, settlement_ts, candles_completed)
      VALUES ('${ticker}', 'E', 'KXHIGHNY', 'active', '', now(), '2026-09-10T00:00Z', '2026-09-12T00:00Z',
        ${settled === null ? 'NULL' : `'${settled}'`}, '{[2026-09-09T00:00Z,2026-09-12T00:00Z)}')`)
  }
  await file.store.migrate()
  const window = { fromMs: FIRST_MS, toMs: FIRST_MS + 2 * DAY_MS }
  const nowMs = Date.parse('2026-10-30T00:00:00Z')
  const missing = await missingCandles(file.store.postgres, 'KXHIGHNY', window, nowMs)
  // The candle that ends at midnight was not requested.
  const last = { fromMs: window.toMs - 60_000, toMs: window.toMs }
  assert.deepEqual(
    missing.map(({ ticker, fromMs, toMs }) => ({ ticker, fromMs, toMs })),
    [
      { ticker: 'OLD', ...last },
      { ticker: 'OPEN', ...last },
    ],
  )
})
