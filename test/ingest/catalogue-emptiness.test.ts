import assert from 'node:assert/strict'
import { beforeEach, test, type TestContext } from 'node:test'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { backfillSource, pollSource } from '../../server/ingest/run-source.ts'
import { missingWindows, type TimeWindow } from '../../server/storage/cursor-store.ts'
import { migrate, readMigrations } from '../../server/storage/migrations.ts'
import { checkCandles } from '../../server/verify/candle-check.ts'
import { MARKETS, SERIES } from '../support/exchange-world.ts'
import { type Answer, type AskedRequest, send } from '../support/local-upstream.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import {
  startWorld,
  type UpstreamWorld,
  WORLD_NOW_MS,
  worldContext,
  worldSource,
} from '../support/upstream-world.ts'

const file = storeOfThisFile()
const SPAN: TimeWindow = {
  fromMs: Date.parse('2026-07-01T00:00:00Z'),
  toMs: Date.parse('2026-08-29T00:00:00Z'),
}
/** Dates before the later events, and with the second of them. */
const EARLY: TimeWindow = { fromMs: SPAN.fromMs, toMs: Date.parse('2026-07-20T00:00:00Z') }
const LATE: TimeWindow = { fromMs: Date.parse('2026-08-20T00:00:00Z'), toMs: SPAN.toMs }
const CATALOGUE = { source: 'exchange-catalogue', scope: SERIES } as const
const NO_MARKETS = send(200, '{"markets":[],"cursor":""}')
const NO_EVENTS = send(200, '{"events":[],"cursor":""}')

beforeEach(async () => {
  await command('TRUNCATE series, markets, candles, ingest_cursors')
})

function command<Row>(text: string): Promise<readonly Row[]> {
  return file.store.postgres.run<Row>({ text, parameters: [] })
}

async function backfill(
  t: TestContext,
  world: UpstreamWorld,
  name: 'exchange-catalogue' | 'exchange-candles' = 'exchange-catalogue',
  span = SPAN,
  nowMs = WORLD_NOW_MS,
): Promise<{ readonly errorCount: number; readonly problems: readonly string[] }> {
  const problems: string[] = []
  const context = worldContext(file.store.postgres)
  const { errorCount } = await backfillSource(worldSource(t, world, name), span, {
    ...context,
    clock: { ...context.clock, nowMs: () => nowMs },
    onEvent: (event) => {
      if (event.kind === 'rejected') problems.push(...event.problems)
    },
  })
  return { errorCount, problems }
}

function missing(): Promise<readonly TimeWindow[]> {
  return missingWindows(file.store.postgres, CATALOGUE, SPAN, WORLD_NOW_MS)
}

async function knownMarkets(): Promise<readonly string[]> {
  const rows = await command<{ readonly ticker: string }>('SELECT ticker FROM markets ORDER BY ticker')
  return rows.map(({ ticker }) => ticker)
}

function onLists(answer: (request: AskedRequest) => Answer | undefined): UpstreamWorld['fault'] {
  return (request) => (/\/(historical\/)?markets\?/.test(request.url) ? answer(request) : undefined)
}

/** The exchange lists nothing at all. */
const NOTHING: UpstreamWorld['fault'] = ({ url }) =>
  url.includes('/events?') ? NO_EVENTS : /markets\?/.test(url) ? NO_MARKETS : undefined

/** The markets that trade within the span. */
const ALL_TICKERS = MARKETS.filter(({ openMs }) => openMs < SPAN.toMs)
  .map(({ ticker }) => ticker)
  .toSorted()

const FALSE_LISTS: readonly (readonly [string, UpstreamWorld['fault'], RegExp])[] = [
  [
    'both lists are empty',
    onLists(() => NO_MARKETS),
    /3 events of KXHIGHNY are listed without a market, first/,
  ],
  [
    'the historical list is empty',
    onLists(({ url }) => (url.includes('/historical/') ? NO_MARKETS : undefined)),
    /1 event of KXHIGHNY is listed without a market, first KXHIGHNY-26JUL10/,
  ],
  [
    'the live list is empty',
    onLists(({ url }) => (url.includes('/historical/') ? undefined : NO_MARKETS)),
    /2 events of KXHIGHNY are listed without a market, first KXHIGHNY-26AUG28/,
  ],
  [
    'a list ends with an empty page',
    onLists(({ url }) => (url.includes('cursor=2') ? NO_MARKETS : undefined)),
    /\/markets ends with an empty page after one that was not full/,
  ],
]

for (const [what, fault, told] of FALSE_LISTS) {
  test(`no window of the catalogue is complete when ${what}, and the next run has every market`, async (t) => {
    const world = await startWorld(t)
    world.fault = fault
    const { problems } = await backfill(t, world)
    assert.match(problems.join('\n'), told)
    assert.deepEqual(await missing(), [SPAN])
    world.fault = () => undefined
    assert.deepEqual(await backfill(t, world), { errorCount: 0, problems: [] })
    assert.deepEqual(await missing(), [])
    assert.deepEqual(await knownMarkets(), ALL_TICKERS)
  })
}

test('lists without markets that the store knows complete no window, whatever the events state', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world)
  await command("UPDATE ingest_cursors SET completed = '{}'")
  await command("DELETE FROM markets WHERE ticker LIKE '%26AUG28%'")
  world.fault = NOTHING
  const { problems } = await backfill(t, world)
  assert.match(problems.join('\n'), /2 settled markets of KXHIGHNY are not listed, first KXHIGHNY-26JUL10-/)
  assert.deepEqual(await missing(), [SPAN])
  world.fault = () => undefined
  assert.equal((await backfill(t, world)).errorCount, 0)
  assert.deepEqual(await knownMarkets(), ALL_TICKERS)
})

const onDay = (t: TestContext, world: UpstreamWorld, day: number): ReturnType<typeof backfill> =>
  backfill(t, world, 'exchange-catalogue', SPAN, WORLD_NOW_MS + day * MS_PER_DAY)

for (const [what, isKnown, told] of [
  [
    'an event without a market',
    false,
    /1 event of KXHIGHNY is listed without a market, first KXHIGHNY-26JUL10/,
  ],
  ['a settled market that is listed no more', true, /2 settled markets of KXHIGHNY are not listed, first/],
] as const) {
  test(`${what} is reported for a week, then accepted as the exchange's state`, async (t) => {
    const world = await startWorld(t)
    if (isKnown) await backfill(t, world)
    await command("UPDATE ingest_cursors SET completed = '{}'")
    const noPast = onLists(({ url }) => (url.includes('/historical/') ? NO_MARKETS : undefined))
    world.fault = (request) => (isKnown && request.url.includes('/events?') ? NO_EVENTS : noPast(request))
    for (const day of [0, 0, 0, 3, 6]) {
      assert.match((await onDay(t, world, day)).problems.join('\n'), told)
      assert.deepEqual(await missing(), [SPAN])
    }
    // Completely empty lists are a fault, however long they last.
    world.fault = (request) =>
      isKnown && request.url.includes('/events?') ? NO_EVENTS : onLists(() => NO_MARKETS)(request)
    assert.ok((await onDay(t, world, 8)).errorCount > 0)
    assert.deepEqual(await missing(), [SPAN])
    world.fault = (request) => (isKnown && request.url.includes('/events?') ? NO_EVENTS : noPast(request))
    const { problems } = await onDay(t, world, 8)
    assert.match(problems.join('\n'), told)
    assert.match(problems.join('\n'), /for a week: now treated as correct/)
    assert.deepEqual(await missing(), [])
    const before = world.asked.length
    assert.equal((await onDay(t, world, 9)).errorCount, 0)
    assert.equal(world.asked.length, before)
    await command("UPDATE ingest_cursors SET completed = '{}'")
    assert.deepEqual(await onDay(t, world, 10), { errorCount: 0, problems: [] })
  })
}

test('markets that are listed again in between restart the week', async (t) => {
  const world = await startWorld(t)
  const noPast = onLists(({ url }) => (url.includes('/historical/') ? NO_MARKETS : undefined))
  world.fault = noPast
  for (const day of [0, 3]) await onDay(t, world, day)
  world.fault = () => undefined
  await onDay(t, world, 4)
  await command("UPDATE ingest_cursors SET completed = '{}'")
  world.fault = noPast
  assert.equal((await onDay(t, world, 8)).errorCount, 2)
  assert.deepEqual(await missing(), [SPAN])
})

test('a series without events is complete, and is not requested twice', async (t) => {
  const world = await startWorld(t)
  world.fault = NOTHING
  assert.equal((await backfill(t, world)).errorCount, 0)
  assert.deepEqual(await missing(), [])
  const before = world.asked.length
  await backfill(t, world)
  assert.equal(world.asked.length, before)
})

test('a window that was empty while no market was known is requested once more when the series has markets', async (t) => {
  const world = await startWorld(t)
  world.fault = NOTHING
  assert.equal((await backfill(t, world, 'exchange-catalogue', EARLY)).errorCount, 0)
  world.fault = () => undefined
  await backfill(t, world, 'exchange-catalogue', LATE)
  assert.equal((await backfill(t, world)).errorCount, 0)
  assert.deepEqual(await knownMarkets(), ALL_TICKERS)
  const before = world.asked.length
  await backfill(t, world)
  assert.equal(world.asked.length, before)
})

test('a window that was empty although earlier markets were known is requested once more after later ones appear', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world, 'exchange-catalogue', EARLY)
  world.fault = NOTHING
  assert.equal((await backfill(t, world, 'exchange-catalogue', LATE)).errorCount, 0)
  const before = world.asked.length
  await backfill(t, world, 'exchange-catalogue', LATE)
  assert.equal(world.asked.length, before)
  world.fault = () => undefined
  assert.equal((await backfill(t, world)).errorCount, 0)
  assert.deepEqual(await knownMarkets(), ALL_TICKERS)
  const done = world.asked.length
  await backfill(t, world)
  assert.equal(world.asked.length, done)
})

test('complete lists of earlier dates also fill a window without events, which is not requested again', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world, 'exchange-catalogue', EARLY)
  world.fault = NOTHING
  await backfill(t, world, 'exchange-catalogue', LATE)
  world.fault = () => undefined
  const middle = { fromMs: EARLY.toMs, toMs: LATE.fromMs }
  assert.equal((await backfill(t, world, 'exchange-catalogue', middle)).errorCount, 0)
  assert.deepEqual(await knownMarkets(), ALL_TICKERS)
  const done = world.asked.length
  await backfill(t, world)
  assert.equal(world.asked.length, done)
})

test('a market from a poll reopens a window without events', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world, 'exchange-catalogue', EARLY)
  world.fault = NOTHING
  await backfill(t, world, 'exchange-catalogue', LATE)
  await backfill(t, world, 'exchange-catalogue', { fromMs: EARLY.toMs, toMs: LATE.fromMs })
  assert.deepEqual(await missing(), [])
  world.fault = () => undefined
  assert.equal((await backfill(t, world)).errorCount, 0)
  const [source] = [worldSource(t, world, 'exchange-catalogue')]
  await pollSource(source, worldContext(file.store.postgres))
  assert.equal((await backfill(t, world)).errorCount, 0)
  assert.deepEqual(
    (await knownMarkets()).filter((ticker) => !ticker.includes('AUG30')),
    ALL_TICKERS.filter((ticker) => !ticker.includes('AUG30')),
  )
  const done = world.asked.length
  await backfill(t, world)
  assert.equal(world.asked.length, done)
})

test('lists of markets without any event are requested once more', async (t) => {
  const world = await startWorld(t)
  // The live list is also empty; the historical one was received.
  world.fault = (request) => (request.url.includes('/historical/') ? undefined : NOTHING(request))
  assert.equal((await backfill(t, world)).errorCount, 0)
  assert.equal((await knownMarkets()).length, 2)
  world.fault = () => undefined
  await backfill(t, world, 'exchange-catalogue', { ...SPAN, toMs: SPAN.toMs - 1 })
  await backfill(t, world, 'exchange-catalogue', { fromMs: SPAN.fromMs - 1, toMs: SPAN.toMs })
  assert.deepEqual(await knownMarkets(), ALL_TICKERS)
})

test('a market that the lists once lacked is taken from later lists of any dates', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world)
  // Like a list that was truncated within an event: nothing shows that there is more.
  const lacking = 'KXHIGHNY-26AUG28-T75'
  await command(`DELETE FROM markets WHERE ticker = '${lacking}'`)
  const earlier = { fromMs: SPAN.fromMs - MS_PER_DAY, toMs: SPAN.toMs }
  assert.equal((await backfill(t, world, 'exchange-catalogue', earlier)).errorCount, 0)
  assert.deepEqual(await knownMarkets(), ALL_TICKERS)
  await backfill(t, world, 'exchange-candles')
  const rows = await command(`SELECT FROM candles WHERE market_ticker = '${lacking}' AND period_interval = 1`)
  assert.ok(rows.length > 0)
})

test('cyclic cursors are an error at once', async (t) => {
  const world = await startWorld(t)
  let pages = 0
  world.fault = onLists(() => {
    pages += 1
    return send(200, `{"markets":[],"cursor":"${pages % 2 === 0 ? 'a' : 'b'}"}`)
  })
  assert.equal((await backfill(t, world)).errorCount, 1)
  assert.equal(pages, 3)
})

test('windows of a store that empty lists had completed are reopened, named, and filled', async (t) => {
  const world = await startWorld(t)
  await backfill(t, world)
  await backfill(t, world, 'exchange-candles')
  const candles = 'SELECT market_ticker, period_interval, end_period_ts FROM candles ORDER BY 1, 2, 3'
  const expected = await command(candles)
  assert.ok(expected.length > 0)
  await command('DROP SCHEMA public CASCADE')
  await command('CREATE SCHEMA public')
  await migrate(file.store.postgres, (await readMigrations()).slice(0, 6))
  await command(`INSERT INTO series (ticker, measure_type, title, category, frequency, tags, active,
      settlement_sources, last_seen_at)
    VALUES ('${SERIES}', 'high', 'Highest temperature', 'Climate and Weather', 'daily', '[]', true, '[]', now())`)
  for (const source of ['exchange-catalogue', 'exchange-candles']) {
    await command(`INSERT INTO ingest_cursors (source, scope, completed)
      VALUES ('${source}', '${SERIES}', '{[2026-07-01T00:00:00Z,2026-08-29T00:00:00Z)}')`)
  }
  await file.store.migrate()
  const { signal } = new AbortController()
  const verified = { postgres: file.store.postgres, lake: null, span: SPAN, nowMs: WORLD_NOW_MS, signal }
  const { findings } = await checkCandles(verified, SERIES)
  assert.deepEqual(
    findings.map(({ of }) => of),
    [`${SERIES}: the catalogue`],
  )
  await backfill(t, world)
  await backfill(t, world, 'exchange-candles')
  assert.deepEqual(await command(candles), expected)
})
