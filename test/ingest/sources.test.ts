import assert from 'node:assert/strict'
import { beforeEach, test } from 'node:test'
import { type IngestEvent, pollSource, type RunOutcome } from '../../server/ingest/run-source.ts'
import { RECORD_SOURCES, type RecordSourceName } from '../../server/ingest/source.ts'
import { readSourceStatus } from '../../server/ingest/source-status.ts'
import type { AskedRequest } from '../support/local-upstream.ts'
import { type Answer, cutAfter, hangUp, send, stall, timeoutMsFor } from '../support/local-upstream.ts'
import { MARKETS, SERIES } from '../support/exchange-world.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import {
  metarEntry,
  startWorld,
  type UpstreamWorld,
  WORLD_NOW_MS,
  worldContext,
  worldSource,
} from '../support/upstream-world.ts'

const file = storeOfThisFile()
const TABLES = 'series, markets, candles, observations, climate_records, ingest_cursors'

beforeEach(async () => {
  await file.store.postgres.run({ text: `TRUNCATE ${TABLES}`, parameters: [] })
})

async function rows<Row>(text: string): Promise<readonly Row[]> {
  return [...(await file.store.postgres.run<Row>({ text, parameters: [] }))]
}

async function rowCounts(): Promise<Record<string, number>> {
  const [counts] = await rows<Record<string, number>>(`SELECT
    (SELECT count(*)::int4 FROM markets) AS markets, (SELECT count(*)::int4 FROM candles) AS candles,
    (SELECT count(*)::int4 FROM observations) AS observations, (SELECT count(*)::int4 FROM climate_records) AS climate`)
  return counts ?? {}
}

const NOTHING = { markets: 0, candles: 0, observations: 0, climate: 0 }

async function poll(
  t: Parameters<typeof worldSource>[0],
  world: UpstreamWorld,
  name: RecordSourceName,
  events: IngestEvent[] = [],
): Promise<RunOutcome> {
  return await pollSource(worldSource(t, world, name), {
    ...worldContext(file.store.postgres),
    onEvent: (event) => events.push(event),
  })
}

test('the catalogue fetches temperature series and their markets of every status', async (t) => {
  const world = await startWorld(t)
  const outcome = await poll(t, world, 'exchange-catalogue')
  assert.equal(outcome.errorCount, 0)
  assert.deepEqual(await rows('SELECT ticker, station_code, active FROM series'), [
    { ticker: SERIES, station_code: 'NYC', active: true },
  ])
  const markets = await rows<{ ticker: string; status: string; result: string }>(
    'SELECT ticker, status, result FROM markets ORDER BY ticker',
  )
  // Markets that settled before the last week are left to the backfill.
  const expected = MARKETS.filter(({ closeMs }) => closeMs > WORLD_NOW_MS - 7 * 86_400_000)
    .map(({ ticker, status, result }) => ({ ticker, status, result }))
    .toSorted((a, b) => (a.ticker < b.ticker ? -1 : 1))
  assert.deepEqual(markets, expected)
  assert.ok(world.asked.every(({ headers }) => headers['user-agent'] === world.config.userAgent))
  assert.equal((await poll(t, world, 'exchange-catalogue')).rowCount, 0)
})

test('candles of known markets are fetched for finished, traded periods of all three lengths', async (t) => {
  const world = await startWorld(t)
  const candles = worldSource(t, world, 'exchange-candles')
  const context = worldContext(file.store.postgres)
  assert.equal((await pollSource(candles, context)).rowCount, 0)
  await poll(t, world, 'exchange-catalogue')
  assert.ok((await pollSource(candles, context)).rowCount > 0)
  const [summary] = await rows<Record<string, unknown>>(`SELECT
    array_agg(DISTINCT period_interval ORDER BY period_interval)::text AS intervals,
    min(volume)::text AS least, max(end_period_ts) <= '${new Date(WORLD_NOW_MS).toISOString()}' AS is_finished
    FROM candles`)
  assert.deepEqual(summary, { intervals: '{1,60,1440}', least: '1250', is_finished: true })
  // Now every market is known, so only the last minutes are requested.
  const before = world.asked.length
  assert.equal((await pollSource(candles, context)).rowCount, 0)
  const asked = world.asked.slice(before).map(({ url }) => new URL(url, 'http://local').searchParams)
  const earliest = Math.min(...asked.map((query) => Number(query.get('start_ts')) * 1000))
  assert.ok(earliest >= WORLD_NOW_MS - 10 * 60_000, new Date(earliest).toISOString())
})

test('a market that becomes known later gets its candles from the beginning', async (t) => {
  const world = await startWorld(t)
  await poll(t, world, 'exchange-catalogue')
  const hidden = 'KXHIGHNY-26AUG30-T75'
  await rows(`DELETE FROM markets WHERE ticker = '${hidden}'`)
  await poll(t, world, 'exchange-candles')
  await rows(`UPDATE markets SET last_seen_at = '2020-01-01'`)
  await poll(t, world, 'exchange-catalogue')
  await poll(t, world, 'exchange-candles')
  const counts = await rows<{ count: number }>(
    `SELECT count(*)::int4 AS count FROM candles WHERE market_ticker LIKE 'KXHIGHNY-26AUG30%' GROUP BY market_ticker`,
  )
  assert.equal(counts.length, 2)
  assert.equal(counts[0]?.count, counts[1]?.count)
})

test('live weather is stored once, then only new reports', async (t) => {
  const world = await startWorld(t)
  const source = worldSource(t, world, 'aviation-weather')
  const context = worldContext(file.store.postgres)
  assert.equal((await pollSource(source, context)).rowCount, 2)
  assert.equal((await pollSource(source, context)).rowCount, 0)
  world.entries = [...world.entries, metarEntry('KNYC', '2026-08-30T11:58:00Z')]
  assert.equal((await pollSource(source, context)).rowCount, 1)
  assert.deepEqual(
    await rows('SELECT station_code, temp_f, source FROM observations ORDER BY observed_at, station_code'),
    ['NYC', 'MIA', 'NYC'].map((station_code) => ({ station_code, temp_f: 78, source: 'awc' })),
  )
})

/** Without an absence one request covers all stations. */
const LIVE_UNTIL_NOW = `INSERT INTO ingest_cursors (source, scope, completed) VALUES
  ('aviation-weather', 'live', '{[2026-08-30 04:30Z, 2026-08-30 11:59Z)}')`

test('live weather that could not be stored is requested again in full', async (t) => {
  await rows(LIVE_UNTIL_NOW)
  const world = await startWorld(t)
  const answer = send(200, JSON.stringify(world.entries), { etag: '"1"' })
  world.fault = ({ headers }) => (headers['if-none-match'] === '"1"' ? send(304) : answer)
  const source = worldSource(t, world, 'aviation-weather')
  const context = worldContext(file.store.postgres)
  await rows('ALTER TABLE observations RENAME TO observations_away')
  await assert.rejects(pollSource(source, context))
  await rows('ALTER TABLE observations_away RENAME TO observations')
  assert.equal((await pollSource(source, context)).rowCount, 2)
  assert.equal((await pollSource(source, context)).rowCount, 0)
  assert.equal(world.asked.at(-1)?.headers['if-none-match'], '"1"')
})

test('a truncated response of the live feed is a fault until it is complete, even if it is unchanged', async (t) => {
  await rows(LIVE_UNTIL_NOW)
  const world = await startWorld(t)
  const entries = Array.from({ length: 400 }, () => world.entries[0])
  const answer = send(200, JSON.stringify(entries), { etag: '"1"' })
  world.fault = ({ headers }) => (headers['if-none-match'] === '"1"' ? send(304) : answer)
  const source = worldSource(t, world, 'aviation-weather')
  for (let run = 0; run < 2; run += 1) {
    const { failure } = await pollSource(source, worldContext(file.store.postgres))
    assert.equal(failure?.failure, 'too_large')
  }
  assert.deepEqual(await rowCounts(), NOTHING)
})

test('after an absence the missed hours are requested from the live feed', async (t) => {
  const world = await startWorld(t)
  await rows(`INSERT INTO ingest_cursors (source, scope, completed) VALUES
    ('aviation-weather', 'live', '{[2026-08-30 04:30Z, 2026-08-30 06:30Z)}')`)
  await poll(t, world, 'aviation-weather')
  assert.match(world.asked[0]?.url ?? '', /hours=7$/)
  const [status] = (await readSourceStatus(file.store.postgres, WORLD_NOW_MS)).filter(
    ({ source }) => source === 'aviation-weather',
  )
  assert.equal(status?.gapCount, 0)
})

test('after a clock was ahead, live weather and candles are requested as after an absence', async (t) => {
  const world = await startWorld(t)
  await poll(t, world, 'exchange-catalogue')
  /** Hours, or the first second of the candles of open markets. */
  const askedOf = async (name: RecordSourceName): Promise<number> => {
    const before = world.asked.length
    await poll(t, world, name)
    const urls = world.asked.slice(before).map(({ url }) => url)
    return Math.min(
      ...urls.flatMap((url) => /(?<=hours=|tickers=.*start_ts=)\d+/.exec(url) ?? []).map(Number),
    )
  }
  for (const name of ['aviation-weather', 'exchange-candles'] as const) {
    const first = await askedOf(name)
    assert.notEqual(await askedOf(name), first)
    await file.store.postgres.run({
      text: "UPDATE ingest_cursors SET completed = '{[2026-01-01, 2026-09-04)}' WHERE scope = 'live'",
      parameters: [],
    })
    assert.equal(await askedOf(name), first)
  }
})

test('collectors whose clocks differ by seconds request the last minutes of candles', async (t) => {
  const world = await startWorld(t)
  await poll(t, world, 'exchange-catalogue')
  await poll(t, world, 'exchange-candles')
  for (const aheadS of [30, 20, 90, 80]) {
    const before = world.asked.length
    const nowMs = WORLD_NOW_MS + aheadS * 1000
    const context = {
      ...worldContext(file.store.postgres),
      clock: { nowMs: () => nowMs, sleep: async () => {} },
    }
    await pollSource(worldSource(t, world, 'exchange-candles'), context)
    const starts = world.asked
      .slice(before)
      .flatMap(({ url }) => /(?<=start_ts=)\d+/.exec(url) ?? [])
      .map((second) => Number(second) * 1000)
    assert.ok(Math.min(...starts) >= nowMs - 12 * 60_000, new Date(Math.min(...starts)).toISOString())
  }
})

test('both archives fill in values, and the live feed takes precedence', async (t) => {
  const world = await startWorld(t)
  world.entries = [metarEntry('KNYC', '2026-08-29T11:51:00Z', 'T02600172')]
  assert.equal((await poll(t, world, 'aviation-weather')).rowCount, 1)
  assert.equal((await poll(t, world, 'iem')).errorCount, 0)
  assert.equal((await poll(t, world, 'ncei')).rowCount, 2)
  const found = await rows<{ source: string; temp_f: number }>(
    `SELECT source, temp_f FROM observations ORDER BY source`,
  )
  assert.deepEqual(
    found.map(({ source }) => source).toSorted(),
    ['awc', 'iem', 'ncei', 'ncei'].slice(0, found.length),
  )
  assert.equal(found.find(({ source }) => source === 'awc')?.temp_f, 79)
})

test('an unchanged year is requested conditionally', async (t) => {
  const world = await startWorld(t)
  await poll(t, world, 'ncei')
  world.fault = ({ headers }) => (headers['if-none-match'] === '"1"' ? send(304) : undefined)
  const before = world.asked.length
  const outcome = await poll(t, world, 'ncei')
  assert.deepEqual([outcome.rowCount, outcome.errorCount], [0, 0])
  assert.ok(world.asked.slice(before).every(({ headers }) => headers['if-none-match'] === '"1"'))
})

test('a climate report that the live feed and the archive both have is stored once', async (t) => {
  const world = await startWorld(t)
  assert.equal((await poll(t, world, 'climate-nws')).rowCount, 1)
  assert.equal((await poll(t, world, 'climate-afos')).rowCount, 1)
  assert.deepEqual(
    await rows(`SELECT station_code, observation_date::text AS date, high_temp_f, report_type, source
      FROM climate_records ORDER BY observation_date`),
    [
      { station_code: 'MIA', date: '2026-08-28', high_temp_f: 90, report_type: 'final', source: 'iem' },
      { station_code: 'MIA', date: '2026-08-29', high_temp_f: 90, report_type: 'final', source: 'nws' },
    ],
  )
})

test('estimates are made only for closed dates without an official report', async (t) => {
  const world = await startWorld(t)
  await poll(t, world, 'climate-nws')
  await poll(t, world, 'climate-statistics')
  assert.deepEqual(
    await rows(`SELECT station_code, observation_date::text AS date, report_type FROM climate_records
      ORDER BY station_code, observation_date`),
    [
      { station_code: 'MIA', date: '2026-08-27', report_type: 'estimated' },
      { station_code: 'MIA', date: '2026-08-28', report_type: 'estimated' },
      { station_code: 'MIA', date: '2026-08-29', report_type: 'final' },
      { station_code: 'NYC', date: '2026-08-27', report_type: 'estimated' },
      { station_code: 'NYC', date: '2026-08-28', report_type: 'estimated' },
      { station_code: 'NYC', date: '2026-08-29', report_type: 'estimated' },
    ],
  )
})

const UPSTREAMS: Readonly<Record<RecordSourceName, string>> = {
  'exchange-catalogue': 'kalshi',
  'exchange-candles': 'kalshi',
  'aviation-weather': 'awc',
  iem: 'iem',
  ncei: 'ncei',
  'climate-nws': 'nws',
  'climate-afos': 'iem-afos',
  'climate-statistics': 'acis',
}

const FAULTS: readonly (readonly [string, string, Answer])[] = [
  ['a rate limit without Retry-After', 'rate_limited', send(429, '{"error":"too many requests"}')],
  ['a server error', 'server_error', send(503, 'busy')],
  ['no answer in time', 'timeout', stall()],
  ['a closed connection', 'unreachable', hangUp()],
  ['a body cut in the middle', 'truncated', cutAfter(10, '{"series":[],"markets":[],"events":[]}')],
  ['a page of HTML', 'malformed', send(200, '<html><body>maintenance</body></html>')],
  ['an empty body', 'malformed', send(200, '')],
  ['JSON of another shape', 'malformed', send(200, '{"data":{"version":2}}')],
]

for (const name of RECORD_SOURCES) {
  test(`${name} reports every fault of its upstream and stores nothing`, async (t) => {
    const world = await startWorld(t)
    if (name === 'exchange-candles') await poll(t, world, 'exchange-catalogue')
    const before = await rowCounts()
    for (const [fault, failure, answer] of FAULTS) {
      world.fault = () => answer
      world.timeoutMs = timeoutMsFor([answer])
      const events: IngestEvent[] = []
      const outcome = await poll(t, world, name, events)
      assert.ok(outcome.errorCount > 0, fault)
      assert.equal(outcome.failure?.upstream, UPSTREAMS[name], fault)
      assert.equal(outcome.failure?.failure, failure, fault)
      assert.deepEqual(await rowCounts(), before, fault)
      const [status] = (await readSourceStatus(file.store.postgres, WORLD_NOW_MS)).filter(
        ({ source }) => source === name,
      )
      assert.match(status?.lastFailure ?? '', new RegExp(`^${failure}: ${UPSTREAMS[name]}: `), fault)
      assert.ok((status?.failingCount ?? 0) > 0, fault)
    }
    // Other stations or series are not requested from an upstream that is down.
    world.fault = () => send(503, 'busy')
    const asked = world.asked.length
    await poll(t, world, name)
    assert.equal(new Set(world.asked.slice(asked).map(askedKey)).size, 1)
    world.fault = () => undefined
    const recovered = await poll(t, world, name)
    assert.deepEqual([recovered.errorCount, recovered.needsBackoff], [0, false])
  })
}

function askedKey({ url, body }: AskedRequest): string {
  return `${url} ${body}`
}

test('nothing is stored before every page of the exchange is received', async (t) => {
  const world = await startWorld(t)
  world.fault = ({ url }) => (url.includes('/markets') && url.includes('cursor=') ? send(500) : undefined)
  const outcome = await poll(t, world, 'exchange-catalogue')
  assert.equal(outcome.failure?.upstream, 'kalshi')
  assert.deepEqual(await rowCounts(), NOTHING)
})

test('a repeated cursor is a fault and not an endless loop', async (t) => {
  const world = await startWorld(t)
  world.fault = ({ url }) =>
    url.includes('/events') ? send(200, '{"events":[],"cursor":"again"}') : undefined
  const outcome = await poll(t, world, 'exchange-catalogue')
  assert.match(outcome.failure?.message ?? '', /repeats its cursor/)
})
