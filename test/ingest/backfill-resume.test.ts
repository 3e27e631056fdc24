import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { backfillSource, type RunOptions } from '../../server/ingest/run-source.ts'
import { RECORD_SOURCES, type SourceName } from '../../server/ingest/source.ts'
import type { TimeWindow } from '../../server/storage/cursor-store.ts'
import { MARKETS, tradedEnds } from '../support/exchange-world.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { startWorld, type UpstreamWorld, worldContext, worldSource } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const TABLES = 'series, markets, candles, observations, climate_records, ingest_cursors'
/** Long enough that every window in it is complete for every source but the yearly one. */
const SPAN: TimeWindow = {
  fromMs: Date.parse('2026-06-20T00:00:00Z'),
  toMs: Date.parse('2026-08-20T00:00:00Z'),
}
const WITH_A_PAST = RECORD_SOURCES.filter((name) => name !== 'aviation-weather' && name !== 'climate-nws')

beforeEach(async () => {
  await file.store.postgres.run({ text: `TRUNCATE ${TABLES}`, parameters: [] })
})

/** All rows that a run has written, without the times of writing. */
async function contents(): Promise<readonly string[]> {
  const tables = ['series', 'markets', 'candles', 'observations', 'climate_records']
  const found: string[] = []
  for (const table of tables) {
    const rows = await file.store.postgres.run<{ readonly row: string }>({
      text: `SELECT (to_jsonb(t) - 'written_at' - 'received_at' - 'last_seen_at')::text AS row FROM ${table} t ORDER BY 1`,
      parameters: [],
    })
    found.push(...rows.map(({ row }) => `${table} ${row}`))
  }
  return found
}

async function backfill(
  t: TestContext,
  world: UpstreamWorld,
  name: SourceName,
  options: Partial<RunOptions> = {},
): Promise<number> {
  const source = worldSource(t, world, name)
  const outcome = await backfillSource(source, SPAN, {
    ...worldContext(file.store.postgres, options.signal),
    ...options,
  })
  return outcome.errorCount
}

/** Stores the catalogue, which a backfill of candles needs. */
async function prepare(t: TestContext, world: UpstreamWorld, name: SourceName): Promise<void> {
  if (name === 'exchange-candles') await backfill(t, world, 'exchange-catalogue')
}

for (const name of WITH_A_PAST) {
  test(`a backfill of ${name} that is interrupted anywhere ends with the rows of one run`, async (t) => {
    const world = await startWorld(t)
    await prepare(t, world, name)
    const first = world.asked.length
    await backfill(t, world, name)
    const requestCount = world.asked.length - first
    const expected = await contents()
    assert.ok(requestCount > 1, `${requestCount} requests`)
    // A second run of a complete span requests only what can still change.
    const again = world.asked.length
    await backfill(t, world, name)
    if (name !== 'ncei') assert.equal(world.asked.length, again)
    const random = new SeededRandom(1, name)
    for (let round = 0; round < 3; round += 1) {
      await file.store.postgres.run({ text: `TRUNCATE ${TABLES}`, parameters: [] })
      world.fault = () => undefined
      await prepare(t, world, name)
      await interruptAndResume(t, world, name, 1 + random.below(requestCount - 1))
      assert.deepEqual(await contents(), expected)
    }
  })
}

/** Ends the first run at a request, by an abort or an upstream that fails, and runs again to the end. */
async function interruptAndResume(
  t: TestContext,
  world: UpstreamWorld,
  name: SourceName,
  atRequest: number,
): Promise<void> {
  const controller = new AbortController()
  const completed = new Set<string>()
  const duringStep: string[] = []
  let count = 0
  world.fault = ({ url, body }) => {
    count += 1
    duringStep.push(`${url} ${body}`)
    if (count !== atRequest) return undefined
    controller.abort(new Error('interrupted'))
    return send(503)
  }
  const onStep = (): void => {
    for (const request of duringStep.splice(0)) completed.add(request)
  }
  await assert.rejects(backfill(t, world, name, { signal: controller.signal, onStep }), /interrupted/)
  const before = world.asked.length
  world.fault = () => undefined
  assert.equal(await backfill(t, world, name), 0)
  // Lists shared by many steps and unsettled years are not windows.
  if (name === 'ncei') return
  const isWindow = (url: string): boolean => !/cutoff|historical\/markets\?|\/series\?|\/events\?/.test(url)
  const repeated = world.asked
    .slice(before)
    .map(({ url, body }) => `${url} ${body}`)
    .filter((request) => completed.has(request) && isWindow(request))
  assert.deepEqual(repeated, [])
}

test('candles of markets settled before the cutoff come from the historical route', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world, 'exchange-catalogue')
  const { postgres } = file.store
  const candles = worldSource(t, world, 'exchange-candles')
  const span = { fromMs: SPAN.fromMs, toMs: Date.parse('2026-08-30T00:00:00Z') }
  await backfillSource(worldSource(t, world, 'exchange-catalogue'), span, worldContext(postgres))
  await backfillSource(candles, span, worldContext(postgres))
  for (const market of MARKETS.filter(({ status }) => status === 'finalized')) {
    const found = await postgres.run<{ readonly end_period_ts: number }>({
      text: `SELECT end_period_ts FROM candles WHERE market_ticker = $1::text AND period_interval = 1
        ORDER BY end_period_ts`,
      parameters: [market.ticker],
    })
    assert.deepEqual(
      found.map(({ end_period_ts }) => end_period_ts),
      tradedEnds(market),
      market.ticker,
    )
    const urls = world.asked
      .map(({ url }) => url)
      .filter((url) => url.includes(`${market.ticker}/candlesticks`))
    const isHistorical = market.ticker.includes('26JUL10')
    assert.ok(urls.length > 0 && urls.every((url) => url.includes('/historical/') === isHistorical))
  }
})
