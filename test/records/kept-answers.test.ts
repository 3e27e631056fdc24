// Cached answers equal those of a server without a cache, whatever is written to both stores between and during the
// requests.

import assert from 'node:assert/strict'
import { rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pino } from 'pino'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import type { RunningServer } from '../../server/service/server.ts'
import { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { writeCandles } from '../../server/storage/candle-store.ts'
import { writeClimateEstimates } from '../../server/storage/climate-store.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import { recordFileName } from '../../shared/lake-layout.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { runs } from '../support/effort.ts'
import { candleSet } from '../support/candle-sets.ts'
import { observationSet } from '../support/observation-sets.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { writeCandleFile } from '../support/record-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { TEST_CONFIG } from '../support/test-server.ts'

const place = storeOfThisFile()

const DAY = 86_400_000
const JUNE_MS = Date.parse('2026-06-28T00:00:00Z')
const FROM_TO = 'from=2026-06-28&to=2026-07-04'
const STEPS = runs(16, 120)
/** A market that the random writes never touch. */
const MARKET = 'KXFRESH-A-1'
const DAY_OF_MARKET = `candles?market=${MARKET}&from=2026-07-01&to=2026-07-01`

async function start(t: TestContext, lake: string, answerCacheMb: number): Promise<RunningServer> {
  const { postgres } = place.store
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, answerCacheMb },
    {
      logger: pino({ level: 'silent' }),
      store: storeServices(postgres),
      storeAddress: postgres.address,
    },
  )
  t.after(() => server.close())
  return server
}

interface Got {
  readonly status: number
  readonly headers: Readonly<Record<string, string | null>>
  readonly body: string
}

async function get(
  server: RunningServer,
  target: string,
  headers: Record<string, string> = {},
): Promise<Got> {
  const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/${target}`, { headers })
  const compared = ['content-type', 'content-encoding', 'content-disposition', 'etag', 'link', 'vary']
  const body = Buffer.from(await response.arrayBuffer()).toString('latin1')
  return {
    status: response.status,
    headers: Object.fromEntries(compared.map((name) => [name, response.headers.get(name)])),
    body: response.status >= 400 ? body.replace(/"request_id":"[^"]*"/, '') : body,
  }
}

/** A figure of the answer cache. */
async function figure(server: RunningServer, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${server.port}/metrics`)).text()
  return Number(new RegExp(`^bookcast_answer_cache_${name} (\\d+)$`, 'm').exec(text)?.[1])
}

async function putCandles(candles: readonly StoredCandle[]): Promise<void> {
  await place.store.postgres.transaction(async (transaction) => {
    await writeCandles(transaction, candles)
  })
}

function candle(endMs: number, close: number): StoredCandle {
  const first = candleSet(1, JUNE_MS, 1)[0]!
  const names = { series_ticker: 'KXFRESH', event_ticker: 'KXFRESH-A', market_ticker: MARKET }
  return { ...first, ...names, period_interval: 1, end_period_ts: endMs, close }
}

const CANDLES = candleSet(7, JUNE_MS, 6)
const OBSERVATIONS = observationSet(7, JUNE_MS, 6 * 24)
/** A month and series whose file is not in the manifest, beside those that compaction writes. */
const IMPORTED = { series: 'KXHIGHMIA', month: '2026-06' }

/** Random changes of the stores. */
function changesOf(lake: string): readonly ((random: SeededRandom) => Promise<unknown>)[] {
  const { postgres } = place.store
  const imported = join(lake, recordFileName('candles', IMPORTED.series, IMPORTED.month))
  const some = <Item>(random: SeededRandom, items: readonly Item[], count: number): Item[] =>
    Array.from({ length: count }, () => items[random.below(items.length)]!)
  return [
    async (random) =>
      putCandles(some(random, CANDLES, 20).map((each) => ({ ...each, close: 50 * random.below(200) }))),
    (random) =>
      postgres.transaction((transaction) =>
        writeObservations(
          transaction,
          some(random, OBSERVATIONS, 10).map((observation) => ({
            observation: { ...observation, temp_f: random.below(100) },
            filled: {},
          })),
          (_, incoming) => incoming,
        ),
      ),
    (random) =>
      postgres.transaction((transaction) =>
        writeClimateEstimates(transaction, [
          {
            station_code: 'NYC',
            observation_date: `2026-06-2${random.below(9)}`,
            high_temp_f: random.below(100),
            low_temp_f: 1,
          },
        ]),
      ),
    (random) =>
      compactClosedDays({
        postgres,
        lake,
        delayMs: 0,
        clock: { nowMs: () => JUNE_MS + random.below(7) * DAY, sleep: async () => {} },
      }),
    (random) =>
      writeCandleFile(
        lake,
        IMPORTED.series,
        IMPORTED.month,
        CANDLES.filter(({ series_ticker: series }) => series === 'KXHIGHNY')
          .filter(({ end_period_ts: endMs }) => endMs < Date.parse('2026-07-01T00:00:00Z'))
          .map((each) => ({
            ...each,
            series_ticker: IMPORTED.series,
            event_ticker: each.event_ticker.replace('KXHIGHNY', IMPORTED.series),
            market_ticker: each.market_ticker.replace('KXHIGHNY', IMPORTED.series),
            close: 50 * random.below(200),
          })),
      ),
    () => rm(imported, { force: true }),
    (random) => utimes(imported, random.below(1e6), random.below(1e6)).catch(() => {}),
    (random) =>
      postgres.transaction(async (transaction) => {
        await transaction.run({
          text: `INSERT INTO series VALUES ('KXOTHER', 'high', 'x', $1, 'x', 'daily', '[]', true, DEFAULT, NULL, NULL, NULL, now())
            ON CONFLICT (ticker) DO UPDATE SET station_code = $1`,
          parameters: [random.below(2) === 0 ? 'NYC' : 'MDW'],
        })
        transaction.markChanged('series')
      }),
  ]
}

const TARGETS = [
  `candles?series=KXHIGHNY&${FROM_TO}&interval=60`,
  `candles?market=KXHIGHNY-A-B1&${FROM_TO}&limit=500`,
  `candles?market=KXHIGHNY-A-B2&${FROM_TO}&aggregate=60&tz=station`,
  `candles?event=KXHIGHCHI-A&${FROM_TO}&interval=60&format=csv`,
  `candles?station=NYC&${FROM_TO}&interval=1440`,
  `candles?${FROM_TO}&interval=60&limit=100&offset=50`,
  `candles?series=${IMPORTED.series}&${FROM_TO}&interval=60`,
  `candles?market=${IMPORTED.series}-A-B1&${FROM_TO}&interval=60&format=parquet`,
  `candles?market=KXNONE-1&${FROM_TO}`,
  `observations?station=NYC&${FROM_TO}`,
  `observations?${FROM_TO}&units=metric&format=csv&limit=40`,
  'observations?station=ZZZ&from=2026-07-01&to=2026-07-02',
  'climate?station=NYC',
  'climate?format=ndjson',
  'analysis/climate-gaps?station=NYC&from=2026-06-01&to=2026-06-30',
] as const

test('random writes and reads give the same answers with and without the cache', async (t) => {
  const lake = await temporaryDirectory(t)
  await putCandles(CANDLES)
  const keeping = await start(t, lake, 1)
  const making = await start(t, lake, 0)
  const changes = changesOf(lake)
  const random = new SeededRandom(11, 'kept-answers')
  const tags = new Map<string, string>()
  for (let step = 0; step < STEPS; step += 1) {
    if (random.below(3) === 0) await changes[random.below(changes.length)]!(random)
    const target = TARGETS[random.below(TARGETS.length)]!
    const headers: Record<string, string> = {}
    if (random.below(2) === 0) headers['accept-encoding'] = 'gzip'
    const tag = tags.get(target)
    if (tag !== undefined && random.below(3) === 0) headers['if-none-match'] = tag
    const expected = await get(making, target, headers)
    const asked = Array.from({ length: 1 + random.below(4) }, async () => get(keeping, target, headers))
    for (const got of await Promise.all(asked)) assert.deepEqual(got, expected, `${step} ${target}`)
    if (expected.headers['etag'] != null) tags.set(target, expected.headers['etag'])
  }
  assert.ok((await figure(keeping, 'hits_total')) > STEPS / 6, 'answers were kept')
  assert.equal(await figure(making, 'hits_total'), 0)
  assert.equal(await figure(making, 'bytes'), 0)
})

test('an answer has everything written before its request began, however many requests run at once', async (t) => {
  const lake = await temporaryDirectory(t)
  const server = await start(t, lake, 64)
  const startMs = Date.parse('2026-07-01T00:00:00Z')
  const pending: Promise<void>[] = []
  for (let round = 1; round <= 40; round += 1) {
    const close = 50 * round
    await putCandles([candle(startMs + 60_000 * 60, close)])
    for (let count = 0; count < 5; count += 1) {
      pending.push(
        get(server, DAY_OF_MARKET).then(({ status, body }) => {
          assert.equal(status, 200, body)
          const [row] = JSON.parse(body) as { close: number }[]
          assert.ok(row !== undefined && row.close >= close / 100 - 1, `${row?.close} after ${close}`)
          return undefined
        }),
      )
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all(pending)
  assert.ok((await figure(server, 'hits_total')) > 0)
  assert.ok((await figure(server, 'misses_total')) <= 200)
})

test('a cached answer reads no rows, and one computation serves all concurrent requests', async (t) => {
  const lake = await temporaryDirectory(t)
  const server = await start(t, lake, 64)
  await putCandles([candle(Date.parse('2026-07-01T10:00:00Z'), 100)])
  const first = await get(server, DAY_OF_MARKET)
  const before = await figure(server, 'misses_total')
  const same = await Promise.all(Array.from({ length: 50 }, async () => get(server, DAY_OF_MARKET)))
  for (const got of same) assert.deepEqual(got, first)
  assert.equal(await figure(server, 'misses_total'), before)
  assert.ok((await figure(server, 'hits_total')) >= 50)
  assert.equal(await figure(server, 'answers'), 1)
})

test('failures are not cached', async (t) => {
  const lake = await temporaryDirectory(t)
  const server = await start(t, lake, 64)
  const target = 'candles?market=KXLATER-A-1&from=2026-07-01&to=2026-07-01'
  const unknown = await Promise.all([1, 2, 3, 4].map(async () => get(server, target)))
  assert.deepEqual(
    unknown.map(({ status }) => status),
    [404, 404, 404, 404],
  )
  await putCandles([
    {
      ...candle(Date.parse('2026-07-01T10:00:00Z'), 100),
      series_ticker: 'KXLATER',
      event_ticker: 'KXLATER-A',
      market_ticker: 'KXLATER-A-1',
    },
  ])
  assert.equal((await get(server, target)).status, 200)
  assert.equal(await figure(server, 'answers'), 1)
})

test('an answer too long for the cache is streamed to each client', async (t) => {
  const lake = await temporaryDirectory(t)
  await writeCandleFile(
    lake,
    'KXLONG',
    '2026-06',
    Array.from({ length: 2_000 }, (_, minute) => ({
      ...candle(Date.parse('2026-06-01T00:01:00Z') + minute * 60_000, 50),
      series_ticker: 'KXLONG',
      event_ticker: 'KXLONG-A',
      market_ticker: 'KXLONG-A-1',
    })),
  )
  const server = await start(t, lake, 1)
  const target = 'candles?market=KXLONG-A-1&from=2026-06-01&to=2026-06-20&limit=2000'
  for (let round = 0; round < 2; round += 1) {
    const answers = await Promise.all([1, 2, 3].map(async () => get(server, target)))
    for (const { body } of answers) assert.equal((JSON.parse(body) as unknown[]).length, 2_000)
  }
  assert.equal(await figure(server, 'answers'), 0)
})
