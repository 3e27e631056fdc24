// The whole path: local upstreams are collected into the relational store and a lake, closed days are compacted, the lake
// is pushed to object storage, and a second server that pulls it from there gives the same responses as the first. This is the
// deployment that the design describes: servers share the relational store and object storage, and each has its own lake.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { after, before, test, type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { Bookcast } from '../../clients/typescript/bookcast.ts'
import { storeServices } from '../../server/catalogue/store-services.ts'
import { type Collection, startCollection } from '../../server/collect/collection.ts'
import { SOURCE_NAMES } from '../../server/ingest/source.ts'
import { openRelationalStore, type RelationalStore } from '../../server/storage/relational-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { startCollectingWorld } from '../support/collecting-world.ts'
import { SERIES } from '../support/exchange-world.ts'
import { readTree } from '../support/lake-tree.ts'
import { type EmptyStore, makeEmptyStore } from '../support/postgres.ts'
import { eventually, TEST_CREDENTIALS } from '../support/recorder-harness.ts'
import { BUCKET, type S3Server, startS3Server } from '../support/s3-server.ts'
import { TEST_CONFIG } from '../support/test-server.ts'
import { WORLD_NOW_MS, WORLD_STATIONS } from '../support/upstream-world.ts'

const MARKET = 'KXHIGHNY-26NOV20-B45.5'
const OTHER_MARKET = 'KXHIGHNY-26NOV20-T48'
const FORMATS = ['json', 'ndjson', 'csv', 'parquet'] as const
const OPEN = 'from=2026-08-26&to=2026-08-31'
/** All of it moves to the lake; a candle that ends at the next midnight moves a day later. */
const CLOSED = 'from=2026-08-26&to=2026-08-29T23:59:00Z'

const logger = pino({ level: process.env['TEST_LOG'] ?? 'silent' })
/** The date of the test world. Pauses are short, but sources with a pause of more than a minute are polled once. */
const CLOCK = {
  nowMs: () => WORLD_NOW_MS + performance.now(),
  sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
    await delay(ms > 60_000 ? ms : Math.min(ms, 200), undefined, signal === undefined ? {} : { signal })
  },
}

const places: EmptyStore[] = []
const stores: RelationalStore[] = []

async function openStore(): Promise<RelationalStore> {
  const place = await makeEmptyStore()
  places.push(place)
  const store = await openRelationalStore(place)
  stores.push(store)
  await store.migrate()
  return store
}

let store: RelationalStore
/** Removed after the servers have stopped, because they pull into it until then. */
let root: string
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  store = await openStore()
})
after(async () => {
  for (const each of stores) await each.close()
  await rm(root, { recursive: true, force: true })
  for (const place of places) await place.remove()
})

async function serve(
  t: TestContext,
  lake: string,
  { postgres }: RelationalStore,
  more: { readonly s3?: S3Server; readonly collection?: Collection } = {},
): Promise<string> {
  const { s3, collection } = more
  const sync = s3 === undefined ? null : { from: `s3://${BUCKET}/x`, endpoint: s3.endpoint, intervalMs: 300 }
  const server = await startColdServer(
    { ...TEST_CONFIG, lake, sync },
    {
      logger,
      store: storeServices(postgres),
      storeAddress: postgres.address,
      ...(collection === undefined ? {} : { collection: () => collection.metrics() }),
    },
  )
  t.after(() => server.close())
  return `http://127.0.0.1:${server.port}`
}

/** Every endpoint, with the formats it has, over spans that hold rows of the store, of the lake and of both. */
function requests(dates: readonly string[]): string[] {
  const formatted = [
    ...[OPEN, CLOSED].flatMap((span) => [
      `candles?series=${SERIES}&${span}&interval=1`,
      `candles?series=${SERIES}&${span}&interval=1&aggregate=60&tz=station&columns=end_period_ts,market_ticker,close`,
      `observations?${span}`,
      `observations?station=NYC&${span}&units=metric&tz=station`,
    ]),
    'climate?from=2026-08-20&to=2026-08-31',
    'climate?station=MIA&from=2026-08-20&to=2026-08-31&revisions=true',
    `lob?series=KXHIGHNY&from=${dates[0]}&to=${dates.at(-1)}&interval=1`,
    `lob?market=${MARKET}&from=${dates[0]}&to=${dates.at(-1)}&interval=1&levels=3`,
  ].flatMap((path) => FORMATS.map((format) => `${path}&format=${format}`))
  return [
    ...formatted,
    `candles?market=KXHIGHNY-26AUG28-T75&${OPEN}&interval=1&limit=7&offset=5`,
    'analysis/climate-gaps?station=MIA&from=2026-08-20&to=2026-08-30&official=true',
    'series',
    'series?active=true',
    `series/${SERIES}`,
    'series/NONE',
    'markets',
    `markets?series=${SERIES}&limit=3&offset=1`,
    'markets/KXHIGHNY-26AUG28-T75',
    'markets/NONE',
  ].map((path) => `/api/v1/${path}`)
}

interface Answer {
  readonly status: number
  readonly type: string | null
  readonly link: string | null
  readonly body: Buffer
}

async function ask(url: string, path: string): Promise<Answer> {
  const response = await fetch(url + path)
  const { status, headers } = response
  const body = Buffer.from(await response.arrayBuffer())
  return { status, type: headers.get('content-type'), link: headers.get('link'), body }
}

/** The parts of a problem that differ between requests. */
function comparable({ status, type, link, body }: Answer): unknown {
  if (type !== 'application/problem+json') return { status, type, link, body }
  const problem = JSON.parse(body.toString()) as Record<string, unknown>
  return { status, type, problem: { ...problem, request_id: null } }
}

/** Compares two servers, byte for byte, and returns the requests whose responses had rows. */
async function compare(first: string, second: string, paths: readonly string[]): Promise<string[]> {
  const filled: string[] = []
  for (const path of paths) {
    const [a, b] = [await ask(first, path), await ask(second, path)]
    assert.ok(a.status === 200 || path.endsWith('/NONE'), `${path}: ${a.body.toString()}`)
    assert.deepEqual(comparable(b), comparable(a), path)
    if (a.status === 200 && a.body.toString() !== '[]') filled.push(path)
  }
  return filled
}

test('a second server that pulls the lake gives the same responses as the collecting one, for every endpoint', async (t) => {
  const [lake, copy, ownCopy] = ['lake', 'copy', 'own'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ]
  for (const directory of [lake, copy, ownCopy]) await mkdir(directory)
  const s3 = await startS3Server(t)
  const { rest, feed } = await startCollectingWorld(t)
  for (const market of [MARKET, OTHER_MARKET]) {
    feed.markets.set(market, 'active')
    feed.setBook(market, [
      [0, 40, 1000],
      [1, 90, 1000],
    ])
  }
  const firstDate = new Date().toISOString().slice(0, 10)
  const collection = startCollection({
    config: {
      ingest: rest.config,
      names: SOURCE_NAMES,
      recording: {
        lake,
        workDirectory: join(root, 'work'),
        userAgent: 'bookcast-test',
        kalshi: {
          series: ['KXHIGHNY'],
          credentials: TEST_CREDENTIALS,
          socketUrl: feed.socketUrl,
          restUrl: rest.config.kalshiUrl,
        },
      },
      compaction: { lake, delayMs: 0, graceMs: 3_000, intervalMs: 200 },
      push: { lake, to: `s3://${BUCKET}/x`, settings: { endpoint: s3.endpoint }, intervalMs: 300, raw: true },
    },
    postgres: store.postgres,
    logger,
    stations: WORLD_STATIONS,
    http: { clock: CLOCK, random: () => 0.5 },
  })
  const first = await serve(t, lake, store, { collection })
  const second = await serve(t, copy, store, { s3 })
  try {
    await eventually(() => feed.isFollowed(MARKET) && feed.isFollowed(OTHER_MARKET), 'markets are followed')
    for (const cents of [50, 51, 52]) {
      feed.change(MARKET, 0, cents, 700)
      feed.change(OTHER_MARKET, 1, cents + 10, 300)
      await delay(1_000)
    }
    const rowsOf = (name: string): number =>
      collection.metrics().tasks.find(({ task }) => task === name)?.rowCount ?? 0
    // The push of the lake may bring raw segments before the push of raw segments does.
    const sources = collection
      .metrics()
      .tasks.map(({ task }) => task)
      .filter((task) => task !== 'raw-push')
    // The archive has the newest climate report too: if it is faster, the live feed brings nothing new.
    const isEarlier = (source: string): boolean => source === 'climate-nws' && rowsOf('climate-afos') === 2
    for (const source of sources)
      await eventually(() => rowsOf(source) > 0 || isEarlier(source), `${source} brings rows`)
    await eventually(async () => (await hotRows('candles', '2026-08-30')) === 0, 'closed candles move')
    await eventually(async () => (await hotRows('observations', '2026-08-30')) === 0, 'closed reports move')
    // While rows move, the copy is never wrong.
    await compare(first, second, [
      `/api/v1/observations?${CLOSED}`,
      `/api/v1/candles?series=${SERIES}&${CLOSED}`,
    ])
  } finally {
    await collection.stop()
  }
  // Pushes what the recorder published when it stopped, like `bookcast sync --to`.
  const { failures } = await syncLake({ lake, remote: s3.store('x'), direction: 'push' })
  assert.deepEqual(failures, [])
  const files = await readTree(lake)
  await eventually(
    async () => JSON.stringify(await readTree(copy)) === JSON.stringify(files),
    'the copy is whole',
  )

  const dates = [...new Set([firstDate, new Date().toISOString().slice(0, 10)])]
  const paths = requests(dates)
  const filled = await compare(first, second, paths)
  assert.deepEqual(
    filled,
    paths.filter((path) => !path.endsWith('/NONE')),
    'every answer but those of unknown names holds something',
  )
  assert.ok((await hotRows('observations', '2026-08-31')) > 0, 'the answers came from both stores')

  await eventually(
    async () => (await new Bookcast(second).health()).sync.last_sync !== null,
    'the copy has a last sync',
  )
  const { sync, ...state } = await new Bookcast(second).health()
  assert.deepEqual(state, { status: 'ok', embedded_db: 'ok', hosted_db: 'ok' })
  assert.deepEqual([sync.file_count, sync.is_stale], [Object.keys(files).length, false])
  assert.ok(Math.abs(Date.parse(sync.last_sync ?? '') - Date.now()) < 600_000)

  await t.test('a server with its own relational store gives the same responses from the lake', async () => {
    const own = await openStore()
    const third = await serve(t, ownCopy, own, { s3 })
    await eventually(
      async () => JSON.stringify(await readTree(ownCopy)) === JSON.stringify(files),
      'the second copy is whole',
    )
    // It has no catalogue, which knows a series' station, and no row of the open day, up to which gaps are filled.
    const cold = paths
      .filter((path) => path.includes('/lob?') || path.includes(CLOSED))
      .filter((path) => !/candles.*(tz=station|format=json)/.test(path))
    cold.push(`/api/v1/candles?series=${SERIES}&${CLOSED}&interval=60&fill=false`)
    const held = await compare(first, third, cold)
    assert.deepEqual(held, cold)
    assert.equal((await ask(third, '/api/v1/series')).body.toString(), '[]')
  })
})

async function hotRows(table: 'candles' | 'observations', date: string): Promise<number> {
  const time = table === 'candles' ? 'end_period_ts' : 'observed_at'
  const [row] = await store.postgres.run<{ count: number }>({
    text: `SELECT count(*)::int4 AS count FROM ${table} WHERE ${time} < $1::timestamptz`,
    parameters: [`${date}T00:00:00Z`],
  })
  return row?.count ?? -1
}
