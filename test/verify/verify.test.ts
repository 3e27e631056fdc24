import assert from 'node:assert/strict'
import { cp, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, test, type TestContext } from 'node:test'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { createSources } from '../../server/ingest/registry.ts'
import { backfillSource } from '../../server/ingest/run-source.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { completeWindow, missingWindows, type TimeWindow } from '../../server/storage/cursor-store.ts'
import { checkCandles } from '../../server/verify/candle-check.ts'
import type { Finding, VerifyContext } from '../../server/verify/finding.ts'
import { checkObservations } from '../../server/verify/observation-check.ts'
import { repairScope } from '../../server/verify/repair.ts'
import { type AskedRequest, send, startRoutedUpstream } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { bookcast } from '../support/program.ts'
import { randomExchange, type RandomExchange, STORED_CANDLES } from '../support/random-exchange.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { worldConfig } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const DAY_MS = 86_400_000
const FIRST_MS = Date.parse('2026-09-10T00:00:00Z')
const SPAN: TimeWindow = { fromMs: FIRST_MS - 4 * DAY_MS, toMs: FIRST_MS + 40 * DAY_MS }
const NOW_MS = SPAN.toMs + 4 * DAY_MS

beforeEach(async () => {
  await command('TRUNCATE series, markets, candles, observations, ingest_cursors, lake_manifest')
})

function command<Row>(text: string): Promise<readonly Row[]> {
  return file.store.postgres.run<Row>({ text, parameters: [] })
}

function context(lake: string | null = null, span = SPAN): VerifyContext {
  const { signal } = new AbortController()
  return { postgres: file.store.postgres, lake, span, nowMs: NOW_MS, signal }
}

interface Exchange {
  readonly exchange: RandomExchange
  readonly asked: readonly AskedRequest[]
  backfill(span?: TimeWindow): Promise<void>
}

async function startExchange(t: TestContext, seed: number): Promise<Exchange> {
  const exchange = randomExchange(new SeededRandom(seed, 'verify'), FIRST_MS, FIRST_MS + 10 * DAY_MS)
  exchange.nowMs = NOW_MS
  const { baseUrl, asked } = await startRoutedUpstream(
    t,
    (request) => exchange.answer(request, '/kalshi') ?? send(404),
  )
  return {
    exchange,
    asked,
    async backfill(span = SPAN) {
      const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
      const names = ['exchange-catalogue', 'exchange-candles'] as const
      const sources = createSources(worldConfig(baseUrl), { names, http: { clock } })
      for (const source of sources) {
        const { signal } = new AbortController()
        const outcome = await backfillSource(source, span, { postgres: file.store.postgres, clock, signal })
        assert.equal(outcome.errorCount, 0)
        await source.close()
      }
    },
  }
}

async function candleFindings(
  { exchange }: Exchange,
  lake: string | null = null,
  span = SPAN,
): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const series of exchange.series)
    findings.push(...(await checkCandles(context(lake, span), series)).findings)
  return findings
}

async function repairAll({ exchange }: Exchange): Promise<void> {
  for (const series of exchange.series) {
    await repairScope(file.store.postgres, await checkCandles(context(), series), ['exchange-candles'])
  }
}

async function storedCandles(): Promise<readonly string[]> {
  return (await command<{ readonly text: string }>(STORED_CANDLES)).map(({ text }) => text).toSorted()
}

const LOSSES = [
  [
    'a minute',
    'period_interval = 1 AND end_period_ts = (SELECT max(end_period_ts) FROM candles WHERE period_interval = 1)',
  ],
  ['hours', 'period_interval = 60'],
  ['days', 'period_interval = 1440'],
  ['a market', 'market_ticker = (SELECT max(market_ticker) FROM candles)'],
  ['hours and days', 'period_interval > 1'],
  ['every third candle', 'mod(extract(epoch FROM end_period_ts)::int8 / 60 + period_interval / 60, 3) = 0'],
  ['minutes and hours of a day', "period_interval < 1440 AND end_period_ts < '2026-09-14'"],
  ['everything', 'true'],
] as const

test('exactly the lost candles are named, reopened and fetched again', async (t) => {
  const world = await startExchange(t, 7)
  await world.backfill()
  const expected = await storedCandles()
  assert.deepEqual(await candleFindings(world), [])
  for (const [what, condition] of LOSSES) {
    const lost = await command<{ readonly market_ticker: string }>(
      `DELETE FROM candles WHERE ${condition} RETURNING market_ticker`,
    )
    const markets = new Set(lost.map(({ market_ticker }) => market_ticker))
    assert.ok(markets.size > 0, what)
    const findings = await candleFindings(world)
    assert.deepEqual([...new Set(findings.map(({ of }) => of))].toSorted(), [...markets].toSorted(), what)
    // Naming candles does not reopen their windows.
    let before = world.asked.length
    await world.backfill()
    assert.equal(world.asked.length, before, what)
    await repairAll(world)
    before = world.asked.length
    await world.backfill()
    const again = world.asked
      .slice(before)
      .map(({ url }) => /\/markets\/([^/]+)\/candlesticks/.exec(url)?.[1])
    assert.deepEqual(
      [...new Set(again.filter((ticker) => ticker !== undefined))].toSorted(),
      [...markets].toSorted(),
    )
    assert.deepEqual(await storedCandles(), expected, what)
    assert.deepEqual(await candleFindings(world), [], what)
  }
})

test('markets that cross the ends of a range are not findings, but candles missing within it are', async (t) => {
  const world = await startExchange(t, 10)
  const range = { fromMs: FIRST_MS + 2 * DAY_MS, toMs: FIRST_MS + 8 * DAY_MS }
  await world.backfill(range)
  const crossing = world.exchange.markets.filter(
    ({ openMs, trades }) => openMs < range.fromMs && trades.some(({ endMs }) => endMs < range.fromMs),
  )
  assert.ok(crossing.length > 0)
  assert.deepEqual(await candleFindings(world, null, range), [])
  const [lost] = await command<{ readonly market_ticker: string }>(
    `DELETE FROM candles WHERE (market_ticker, end_period_ts, period_interval) IN (
       SELECT market_ticker, end_period_ts, period_interval FROM candles WHERE period_interval = 1
       AND end_period_ts BETWEEN '2026-09-14' AND '2026-09-15' ORDER BY 1, 2 LIMIT 1)
     RETURNING market_ticker`,
  )
  const findings = await candleFindings(world, null, range)
  assert.deepEqual([...new Set(findings.map(({ of }) => of))], [lost?.market_ticker])
})

test('candles that have moved to the lake are counted there', async (t) => {
  const world = await startExchange(t, 8)
  await world.backfill()
  const lake = await temporaryDirectory(t)
  const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
  const { failures } = await compactClosedDays({ postgres: file.store.postgres, lake, clock })
  assert.deepEqual(failures, [])
  assert.deepEqual(await storedCandles(), [])
  assert.deepEqual(await candleFindings(world, lake), [])
  await assert.rejects(candleFindings(world), /have moved to candles\/.*name the lake/)
  // A broken file is an error, not a day without candles.
  const [name] = (await entriesBelow(lake)).filter((entry) => entry.endsWith('.parquet'))
  assert.ok(name !== undefined)
  await writeFile(join(lake, name), 'no parquet')
  await assert.rejects(candleFindings(world, lake), /parquet/i)
})

test('a copy of the lake without recently moved rows is an error and not counted', async (t) => {
  const [lake, copy] = [await temporaryDirectory(t), await temporaryDirectory(t)]
  const day = { fromMs: FIRST_MS + DAY_MS, toMs: FIRST_MS + 2 * DAY_MS }
  const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
  for (const date of ['2026-09-10', '2026-09-11']) {
    await command(`INSERT INTO observations (station_code, observed_at, observation_type, source)
      SELECT 'NYC', '${date}T00:51:00Z'::timestamptz + hour * interval '1 hour', 'METAR', 'iem'
      FROM generate_series(0, 23) hour`)
    await cp(lake, copy, { recursive: true })
    await compactClosedDays({ postgres: file.store.postgres, lake, clock })
  }
  assert.deepEqual((await checkObservations(context(lake, day), 'NYC')).findings, [])
  await assert.rejects(checkObservations(context(copy, day), 'NYC'), /is older than the file in the manifest/)
})

test('windows that were never requested are reported as such', async (t) => {
  const world = await startExchange(t, 9)
  await world.backfill()
  await command("UPDATE markets SET candles_completed = '{}'")
  await command('DELETE FROM candles')
  await command("UPDATE ingest_cursors SET completed = '{}' WHERE source = 'exchange-catalogue'")
  const findings = await candleFindings(world)
  assert.ok(findings.some(({ of }) => of === 'KXHIGHNY: the catalogue'))
  assert.ok(findings.length > world.exchange.series.length)
  for (const { text, window } of findings) {
    assert.match(text, /: not asked for yet$/)
    assert.equal(window, null)
  }
})

test('hours without a routine report are named, and only their days are reopened', async () => {
  const day = { fromMs: FIRST_MS, toMs: FIRST_MS + 3 * DAY_MS }
  const { postgres } = file.store
  // A whole first day, one report of the second, none of the third.
  await command(`INSERT INTO observations (station_code, observed_at, observation_type, source)
    SELECT 'NYC', '2026-09-10T00:51:00Z'::timestamptz + hour * interval '1 hour', 'METAR', 'iem'
    FROM generate_series(0, 30) hour WHERE hour < 24 OR hour = 30`)
  await postgres.transaction((transaction) =>
    completeWindow(transaction, { source: 'iem', scope: 'NYC' }, day),
  )
  const report = await checkObservations(context(null, day), 'NYC')
  const texts = report.findings.map(({ text }) => text)
  assert.equal(report.dayCount, 3)
  assert.match(texts[0] ?? '', /^2026-09-11: 1 of 24 hourly reports, missing 00 01 02 03 04 05 07 08 /)
  assert.deepEqual(texts.slice(1), ['2026-09-12: 0 of 24 hourly reports'])
  assert.equal(await repairScope(postgres, report, ['iem', 'ncei']), 2)
  const missing = await missingWindows(postgres, { source: 'iem', scope: 'NYC' }, day, NOW_MS)
  assert.deepEqual(missing, [{ fromMs: FIRST_MS + DAY_MS, toMs: FIRST_MS + 3 * DAY_MS }])
})

test('the error for an unreadable file is one sentence with the file and the remedy', async (t) => {
  const lake = await temporaryDirectory(t)
  await command(`INSERT INTO observations (station_code, observed_at, observation_type, source)
   VALUES ('NYC', '2026-09-10T00:51:00Z', 'METAR', 'iem')`)
  const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
  await compactClosedDays({ postgres: file.store.postgres, lake, clock })
  const path = join(lake, 'observations/station=NYC/year=2026/observations.parquet')
  const bytes = await readFile(path)
  const spoil = [
    () => writeFile(path, bytes.subarray(0, 900)),
    () => writeFile(path, ''),
    () => rm(path),
    () => mkdir(path),
  ]
  for (const damage of spoil) {
    await damage()
    await assert.rejects(checkObservations(context(lake), 'NYC'), (error: Error) => {
      assert.ok(error.message.startsWith(`${path} cannot be read: `), error.message)
      assert.match(
        error.message,
        /^.*\. If it is damaged or missing, .* "bookcast sync --lake … --from …"\.$/,
      )
      return true
    })
  }
})

test('a missing lake is refused, even if no rows have moved', async (t) => {
  const lake = join(await temporaryDirectory(t), 'none')
  const { code, stderr } = await bookcast(['verify', '--store', '--lake', lake])
  assert.equal(code, 1)
  assert.match(stderr, /--lake: there is no directory /)
})
