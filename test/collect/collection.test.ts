// All collecting tasks in one process: sources, recorder, compaction and push run concurrently.

import assert from 'node:assert/strict'
import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { beforeEach, test } from 'node:test'
import { pino } from 'pino'
import type { CollectConfig } from '../../server/collect/collect-config.ts'
import { type Collection, startCollection } from '../../server/collect/collection.ts'
import { collectorMetrics } from '../../server/metrics/collection-metrics.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { syncLake } from '../../server/sync/lake-sync.ts'
import { writeObservations } from '../../server/storage/observation-store.ts'
import type { StoredObservation } from '../../shared/sql/observation-queries.ts'
import { send } from '../support/local-upstream.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { readRows } from '../support/lob-rows.ts'
import { observationAt, parquet, query } from '../support/moved-rows.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { eventually, TEST_CREDENTIALS } from '../support/recorder-harness.ts'
import { entriesBelow, temporaryDirectory } from '../support/temporary-lake.ts'
import { startWorld, WORLD_NOW_MS, WORLD_STATIONS } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const MARKET = 'KXHIGHNY-26NOV20-B45.5'
/** A report of a past day. */
const CLOSED = 'NYC 2026-08-29T11:51:00.000Z'
const NEW_YORK = 'observations/station=NYC/year=2026/observations.parquet'

/** Pause between two rounds of a task: shorter pauses cost more processor time while a test waits for the recorder. */
const REST_MS = 600
/** The date of the test world, and short pauses. */
const CLOCK = {
  nowMs: () => WORLD_NOW_MS + performance.now(),
  sleep: async (ms: number, signal?: AbortSignal): Promise<void> => {
    await delay(Math.min(ms, REST_MS), undefined, signal === undefined ? {} : { signal })
  },
}

beforeEach(async () => {
  const tables = 'TRUNCATE candles, observations, lake_manifest, ingest_cursors'
  await file.store.postgres.run({ text: tables, parameters: [] })
})

interface Collecting {
  readonly collection: Collection
  readonly lake: string
  readonly remote: string
  /** The metrics of one task. */
  readonly task: (name: string) => ReturnType<Collection['metrics']>['tasks'][number]
}

/** Collects while `work` runs. */
async function collecting(
  ingest: CollectConfig['ingest'],
  root: string,
  exchange: LocalKalshi | undefined,
  work: (collecting: Collecting) => Promise<void>,
): Promise<void> {
  const [lake, remote] = [join(root, 'lake'), join(root, 'remote')]
  const collection = startCollection({
    config: {
      ingest,
      names: exchange === undefined ? [] : ['aviation-weather', 'iem', 'climate-nws'],
      recording:
        exchange === undefined
          ? null
          : {
              lake,
              workDirectory: join(root, 'work'),
              userAgent: 'bookcast-test',
              kalshi: {
                series: ['KXHIGHNY'],
                credentials: TEST_CREDENTIALS,
                socketUrl: exchange.socketUrl,
                restUrl: exchange.restUrl,
              },
            },
      compaction: { lake, delayMs: 0, graceMs: 1, intervalMs: REST_MS },
      push: { lake, to: remote, settings: {}, intervalMs: REST_MS, raw: true },
    },
    postgres: file.store.postgres,
    logger: pino({ level: process.env['TEST_LOG'] ?? 'silent' }),
    stations: WORLD_STATIONS,
    http: { clock: CLOCK, random: () => 0.5 },
  })
  const task = (name: string) => {
    const found = collection.metrics().tasks.find((each) => each.task === name)
    assert.ok(found !== undefined, `there is a task ${name}`)
    return found
  }
  try {
    await work({ collection, lake, remote, task })
  } finally {
    await collection.stop()
  }
}

test('a failing task stops no other task and loses no rows, and it resumes once the cause is removed', async (t) => {
  const root = await temporaryDirectory(t)
  const world = await startWorld(t)
  const exchange = await LocalKalshi.start(t)
  exchange.markets.set(MARKET, 'active')
  exchange.setBook(MARKET, [[0, 40, 1000]])
  world.fault = ({ url }) => (url.startsWith('/nws') ? send(503) : undefined)
  // Neither a log nor a copy can be written below a file.
  for (const name of ['work', 'remote']) await writeFile(join(root, name), 'in the way')
  await collecting(world.config, root, exchange, async ({ collection, lake, remote, task }) => {
    await eventually(() => task('iem').rowCount > 0 && task('aviation-weather').rowCount > 0, 'rows come')
    await eventually(async () => (await entriesBelow(lake)).includes(NEW_YORK), 'a closed day is in the lake')
    for (const name of ['climate-nws', 'recorder-kalshi', 'lake-push']) {
      await eventually(() => task(name).failureCount > 1, `${name} fails again and again`)
      assert.notEqual(task(name).lastFailure, null)
    }
    assert.equal(task('compaction').failureCount, 0)
    assert.equal(
      task('compaction').rowCount,
      0,
      'no row leaves the store before its file is in object storage',
    )
    const hot = await hotObservations()
    assert.ok(hot.includes(CLOSED), hot.join())

    world.fault = () => undefined
    for (const name of ['work', 'remote']) await rm(join(root, name))
    await mkdir(remote)
    await eventually(() => task('recorder-kalshi').rowCount > 0, 'the exchange is recorded')
    await eventually(() => task('climate-nws').rowCount > 0, 'climate reports come')
    await eventually(() => task('compaction').rowCount > 0, 'rows move')
    await eventually(async () => !(await hotObservations()).includes(CLOSED), 'the row has left the store')
    assert.ok((await entriesBelow(remote)).includes(NEW_YORK))
    await eventually(
      async () => (await entriesBelow(remote)).some((name) => name.startsWith('lob/')),
      'books are pushed',
    )
    await checkMetrics(collection)
  })
})

/** Checks the metrics as Prometheus scrapes them. */
async function checkMetrics(collection: Collection): Promise<void> {
  const text = await collectorMetrics(() => collection.metrics()).metrics()
  for (const line of [
    /^bookcast_collect_rows_total\{task="aviation-weather"\} [1-9]/m,
    /^bookcast_collect_runs_total\{task="compaction"\} [1-9]/m,
    /^bookcast_collect_errors_total\{task="climate-nws"\} [1-9]/m,
    /^bookcast_collect_errors_total\{task="aviation-weather"\} 0$/m,
    /^bookcast_collect_failures_in_row\{task="lake-push"\} 0$/m,
    /^bookcast_collect_last_success_timestamp_seconds\{task="lake-push"\} \d+/m,
    /^bookcast_collect_lag_seconds\{task="recorder-kalshi"\} [\d.]+$/m,
    /^bookcast_recorder_messages_total\{exchange="kalshi"\} [1-9]/m,
    /^bookcast_recorder_markets\{exchange="kalshi"\} 1$/m,
    /^bookcast_recorder_connections\{exchange="kalshi"\} 1$/m,
  ]) {
    assert.match(text, line)
  }
}

test('a late row for a day that has moved to the lake is in its file after the next compaction', async (t) => {
  const root = await temporaryDirectory(t)
  await mkdir(join(root, 'remote'))
  const world = await startWorld(t)
  const day = observationAt(Date.parse('2026-08-20T11:51:00Z'), { temp_f: 71 })
  await write([day])
  await collecting(world.config, root, undefined, async ({ lake, task }) => {
    await eventually(() => task('compaction').rowCount === 1, 'the day moves')
    const late = observationAt(Date.parse('2026-08-20T12:51:00Z'), { temp_f: 72 })
    await write([late])
    await eventually(() => task('compaction').rowCount === 2, 'the late row moves')
    const rows = await query(
      `SELECT epoch_ms(observed_at)::DOUBLE AS ms, temp_f FROM ${parquet(join(lake, NEW_YORK))} ORDER BY ms`,
    )
    assert.deepEqual(rows, [
      { ms: day.observed_at, temp_f: 71 },
      { ms: late.observed_at, temp_f: 72 },
    ])
    assert.deepEqual(await hotObservations(), [])
  })
})

test('files that a recorder publishes when it stops are pushed, too', async (t) => {
  const root = await temporaryDirectory(t)
  const remote = join(root, 'remote')
  await mkdir(remote)
  const world = await startWorld(t)
  const exchange = await LocalKalshi.start(t)
  exchange.markets.set(MARKET, 'active')
  exchange.setBook(MARKET, [[0, 40, 1000]])
  await collecting(world.config, root, exchange, async ({ collection }) => {
    await eventually(() => exchange.isFollowed(MARKET), 'the market is followed')
    for (let change = 0; change < 5; change++) exchange.change(MARKET, 0, 50 + change, 100)
    const heard = (): number => collection.metrics().recorders[0]?.frames ?? 0
    await eventually(() => heard() === exchange.sentFrames, 'everything is heard')
  })
  const pushed = await toldIn(remote)
  for (const seq of exchange.changes.keys())
    assert.ok(
      pushed.some((row) => row.includes(` ${seq} 2 `)),
      `${seq} is pushed`,
    )
})

test('a collector with an empty or copied lake resumes from the files of today in object storage', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, remote] = [join(root, 'lake'), join(root, 'remote')]
  await mkdir(remote)
  const world = await startWorld(t)
  const exchange = await LocalKalshi.start(t)
  exchange.markets.set(MARKET, 'active')
  exchange.setBook(MARKET, [[0, 40, 1000]])
  let told: readonly string[] = []
  let cents = 10
  for (const begin of ['anew', 'empty', 'copied']) {
    await rm(join(root, 'work'), { recursive: true, force: true })
    if (begin !== 'anew') await rm(lake, { recursive: true })
    if (begin === 'copied') {
      const { conflicts } = await syncLake({ lake, remote: new DirectoryStore(remote), direction: 'pull' })
      assert.deepEqual(conflicts, [])
    }
    await collecting(world.config, root, exchange, async ({ collection }) => {
      await eventually(() => exchange.isFollowed(MARKET), 'the market is followed')
      for (let change = 0; change < 5; change++) exchange.change(MARKET, 0, cents++, 100)
      await eventually(async () => {
        const now = await toldIn(remote)
        // Checked at every poll, not only at the end.
        assert.deepEqual(
          told.filter((text) => !now.includes(text)),
          [],
          `${begin}: nothing is lost`,
        )
        return now.filter((text) => !told.includes(text)).length >= 6
      }, `${begin}: what it hears is pushed`)
      // One of the next pushes merges a conflict that the latest push found.
      await eventually(
        () => collection.metrics().syncs?.every(({ conflictCount }) => conflictCount === 0) === true,
        `${begin}: no conflict stays`,
      )
    })
    told = await toldIn(remote)
    assert.deepEqual(
      (await entriesBelow(lake)).filter((name) => /kept|unmerged/.test(name)),
      [],
    )
  }
})

test('a collector with an empty lake fetches the files of moved days before it adds rows to them', async (t) => {
  const root = await temporaryDirectory(t)
  const world = await startWorld(t)
  await mkdir(join(root, 'remote'))
  await write([observationAt(Date.parse('2026-08-20T11:51:00Z'))])
  await collecting(world.config, root, undefined, async ({ task }) => {
    await eventually(() => task('compaction').rowCount === 1, 'the day moves')
  })
  await rm(join(root, 'lake'), { recursive: true })
  await mkdir(join(root, 'lake'))
  await write([observationAt(Date.parse('2026-08-20T12:51:00Z'))])
  await collecting(world.config, root, undefined, async ({ collection, remote }) => {
    await eventually(async () => (await rowsOf(remote)) === 2, 'the late row is pushed')
    assert.deepEqual(
      collection.metrics().syncs?.map(({ conflictCount }) => conflictCount),
      [0],
    )
  })
})

test('two collectors that take turns continue from each other', async (t) => {
  const root = await temporaryDirectory(t)
  const world = await startWorld(t)
  const [lake, old] = [join(root, 'lake'), join(root, 'old')]
  await Promise.all(['lake', 'old', 'remote'].map((name) => mkdir(join(root, name))))
  for (const [index, hour] of [10, 11, 12, 13].entries()) {
    await write([observationAt(Date.parse(`2026-08-20T${hour}:51:00Z`))])
    await collecting(world.config, root, undefined, async ({ collection, task }) => {
      await eventually(() => task('compaction').rowCount === 1, `row ${index + 1} moves`)
      await eventually(async () => (await rowsOf(join(root, 'remote'))) === index + 1, 'they are pushed')
      assert.deepEqual(
        collection.metrics().syncs?.map(({ conflictCount }) => conflictCount),
        [0],
      )
    })
    // Two machines take turns.
    await rename(lake, join(root, 'changing'))
    await rename(old, lake)
    await rename(join(root, 'changing'), old)
  }
})

async function rowsOf(lake: string): Promise<number> {
  const [row] = await query(`SELECT count(*)::INT AS rows FROM ${parquet(join(lake, NEW_YORK))}`)
  return row!['rows'] as number
}

test('a file that another collector has extended is fetched, even if no row is added to it', async (t) => {
  const root = await temporaryDirectory(t)
  const world = await startWorld(t)
  const [lake, old] = [join(root, 'lake'), join(root, 'old')]
  await Promise.all(['lake', 'remote'].map((name) => mkdir(join(root, name))))
  for (const hour of [10, 11]) {
    await write([observationAt(Date.parse(`2026-08-20T${hour}:51:00Z`))])
    await collecting(world.config, root, undefined, async ({ task }) => {
      await eventually(() => task('compaction').rowCount === 1, 'the row moves')
    })
    if (hour === 10) await cp(lake, old, { recursive: true })
  }
  // The first machine returns in its old state.
  await rm(lake, { recursive: true })
  await rename(old, lake)
  await collecting(world.config, root, undefined, async ({ collection }) => {
    await eventually(async () => (await rowsOf(lake)) === 2, 'the file is fetched')
    const conflicts = () => collection.metrics().syncs?.map(({ conflictCount }) => conflictCount)
    await eventually(() => conflicts()?.join() === '0', 'nothing is in conflict')
  })
})

/** The rows of messages in the order-book files below a directory. */
async function toldIn(directory: string): Promise<string[]> {
  const names = (await entriesBelow(directory)).filter((name) => /^lob\/.*\.parquet$/.test(name))
  const rows = await Promise.all(names.map((name) => readRows(join(directory, name))))
  return rows
    .flat()
    .filter(({ seq }) => seq > 0n)
    .map(({ recv_ts: recvTs, seq, event, price, qty }) => [recvTs, seq, event, price, qty].join(' '))
}

async function write(observations: readonly StoredObservation[]): Promise<void> {
  await file.store.postgres.transaction((transaction) =>
    writeObservations(
      transaction,
      observations.map((observation) => ({ observation, filled: {} })),
      (_, incoming) => incoming,
    ),
  )
}

async function hotObservations(): Promise<string[]> {
  const rows = await file.store.postgres.run<{ station_code: string; observed_at: number }>({
    text: 'SELECT station_code, observed_at FROM observations ORDER BY observed_at',
    parameters: [],
  })
  return rows.map((row) => `${row.station_code} ${new Date(row.observed_at).toISOString()}`)
}
