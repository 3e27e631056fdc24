// Compares every metric of a collector, and every figure of `bookcast status`, with the counts of the upstreams themselves,
// through faults. The last test fails if an exported metric was not compared.

import assert from 'node:assert/strict'
import { cp, mkdir, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { CollectionMetrics } from '../../server/metrics/collection-metrics.ts'
import { logLosses } from '../../server/metrics/log-losses.ts'
import { StorageWatch } from '../../server/health/storage-watch.ts'
import { readSourceStatus } from '../../server/ingest/source-status.ts'
import { RECORD_SOURCES, type RecordSourceName } from '../../server/ingest/source.ts'
import { kalshiDirectory } from '../../server/exchanges/kalshi/directory.ts'
import { UpstreamHttp } from '../../server/upstream/upstream-http.ts'
import { newestRowsOf } from '../../server/storage/newest-rows.ts'
import { noteTradeProof, tradeProofOf } from '../../server/storage/trade-proof-store.ts'
import { DirectoryStore } from '../../server/sync/directory-store.ts'
import { lakeSyncSchedule } from '../../server/sync/lake-sync-schedule.ts'
import { UPSTREAM_ATTEMPTS_MAX } from '../../server/upstream/upstream-http.ts'
import { LocalKalshi } from '../support/local-kalshi.ts'
import { type Answer, cutAfter, hangUp, send, stall } from '../support/local-upstream.ts'
import { readVersion } from '../../server/http/version.ts'
import { exported, held, Scrape } from '../support/metric-scrape.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { eventually, LogLines, readSeries, recordKalshi } from '../support/recorder-harness.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { onSmallDisk } from '../support/small-disk.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { steppedSource } from '../support/stepped-source.ts'
import { startWorld } from '../support/upstream-world.ts'

const file = storeOfThisFile()
const NOTHING: CollectionMetrics = { tasks: [], recorders: [] }
// The sources. The test runs each of them explicitly, once at a time; the upstreams count their responses.

const TABLES: Readonly<Record<RecordSourceName, readonly string[]>> = {
  'exchange-catalogue': ['series', 'markets'],
  'exchange-candles': ['candles'],
  'aviation-weather': ['observations'],
  iem: ['observations'],
  ncei: ['observations'],
  'climate-nws': ['climate_records'],
  'climate-afos': ['climate_records'],
  'climate-statistics': ['climate_records'],
}

/** Faults by name: the response to every request, and whether a client retries it within a run. */
const FAULTS: Readonly<Record<string, { readonly answer: Answer; readonly isRepeated: boolean }>> = {
  'status 500': { answer: send(500, 'no'), isRepeated: true },
  'status 429': { answer: send(429, 'slowly'), isRepeated: true },
  'status 404': { answer: send(404, 'gone'), isRepeated: false },
  'a time-out': { answer: stall(), isRepeated: true },
  'a cut body': { answer: cutAfter(4, '[{"icaoId":"KNYC"}]'), isRepeated: true },
  'a closed connection': { answer: hangUp(), isRepeated: true },
  'what is no JSON': { answer: send(200, '<html>maintenance</html>'), isRepeated: false },
}

/** Every row by its key, without the times at which it was seen and written. */
async function rowsOf(name: RecordSourceName): Promise<ReadonlySet<string>> {
  const rows = await Promise.all(
    TABLES[name].map((table) =>
      file.store.postgres.run<{ readonly row: string }>({
        text: `SELECT (to_jsonb(t) - 'written_at' - 'received_at' - 'last_seen_at')::text AS row FROM ${table} t`,
        parameters: [],
      }),
    ),
  )
  return new Set(rows.flat().map(({ row }) => row))
}

async function statusOf(name: RecordSourceName, nowMs: number) {
  return (await readSourceStatus(file.store.postgres, nowMs)).find(({ source }) => source === name)
}

for (const name of RECORD_SOURCES) {
  test(`the task metrics of ${name} match the received rows, through every fault`, async (t) => {
    const world = await startWorld(t)
    const stepped = steppedSource(t, world, file.store.postgres, name)
    const truth = { runs: 0, rows: 0, empty: 0, failures: 0, lastRowsMs: null as number | null }
    let lastSuccessMs: number | null = null
    const check = async (errors: 'none' | 'some', what: string): Promise<void> => {
      const scrape = await Scrape.of(() => ({ ...NOTHING, tasks: stepped.schedule.metrics() }))
      const value = (metric: string) => scrape.value(`bookcast_collect_${metric}`, { task: name })
      const inS = (ms: number | null) => (ms === null ? undefined : ms / 1000)
      assert.equal(value('runs_total'), truth.runs, `${what}: runs`)
      assert.equal(value('rows_total'), truth.rows, `${what}: rows`)
      assert.equal(value('empty_runs_total'), truth.empty, `${what}: runs without rows`)
      assert.equal(value('failures_in_row'), truth.failures, `${what}: failures`)
      assert.equal(value('last_success_timestamp_seconds'), inS(lastSuccessMs), `${what}: last success`)
      assert.equal(value('last_rows_timestamp_seconds'), inS(truth.lastRowsMs), `${what}: last rows`)
      const lag = value('lag_seconds')
      if (lastSuccessMs === null) assert.equal(lag, undefined)
      else assert.ok(Math.abs((lag ?? 0) - (Date.now() - lastSuccessMs) / 1000) < 60, `${what}: lag ${lag}`)
      if (errors === 'none') assert.equal(value('errors_total'), errorsBefore, `${what}: errors`)
      else assert.ok((value('errors_total') ?? 0) > errorsBefore, `${what}: errors`)
      errorsBefore = value('errors_total') ?? 0
    }
    let errorsBefore = 0
    let startMs = stepped.nowMs
    const goodRun = async (what: string): Promise<void> => {
      world.fault = () => undefined
      const before = await rowsOf(name)
      startMs = stepped.nowMs
      const atMs = await stepped.run()
      const came = [...(await rowsOf(name))].filter((row) => !before.has(row)).length
      truth.runs++
      truth.rows += came
      truth.failures = 0
      lastSuccessMs = atMs
      if (came === 0) truth.empty++
      else truth.lastRowsMs = atMs
      await check('none', what)
    }

    for (const [fault, { answer, isRepeated }] of Object.entries(FAULTS)) {
      world.fault = () => answer
      const [asked, before] = [world.asked.length, await rowsOf(name)]
      const atMs = await stepped.run()
      truth.runs++
      const requests = world.asked.length - asked
      // There may be no requests, because no market is known yet.
      if (requests === 0) {
        truth.empty++
        lastSuccessMs = atMs
        await check('none', fault)
        continue
      }
      // A market that the exchange refuses is an error and does not affect the others.
      if (name === 'exchange-candles' && fault === 'status 404') {
        lastSuccessMs = atMs
        truth.failures = 0
      } else truth.failures++
      const attempts = isRepeated ? UPSTREAM_ATTEMPTS_MAX : 1
      assert.equal(requests % attempts, 0, `${fault}: ${requests} requests, ${attempts} for each that fails`)
      assert.deepEqual(await rowsOf(name), before, `${fault} brings no rows`)
      await check('some', fault)
    }
    await goodRun('good answers')
    await goodRun('the same answers again')
    await goodRun('the same answers for ever')
    const status = await statusOf(name, stepped.nowMs)
    assert.equal(status?.rowCount, BigInt(truth.rows), 'status: rows')
    assert.equal(status?.lastSuccessAtMs, lastSuccessMs, 'status: last success')
    assert.equal(status?.failingCount, 0, 'status: failing')
    assert.equal(status?.lastFailure, null, 'status: last failure')

    world.fault = () => send(500, 'no')
    const asked = world.asked.length
    const atMs = await stepped.run()
    const isFailing = world.asked.length > asked
    const failing = await statusOf(name, stepped.nowMs)
    assert.equal(failing?.failingCount === 0, !isFailing, 'status: failing')
    if (isFailing) assert.match(failing?.lastFailure ?? '', /500/)
    // The age of the part that has waited longest: parts succeed one after the other, and some may have had no requests.
    const [longest, shortest] = isFailing ? [startMs, lastSuccessMs ?? 0] : [startMs, atMs]
    const lagMs = failing?.lagMs ?? -1
    assert.ok(lagMs >= stepped.nowMs - shortest && lagMs <= stepped.nowMs - longest, `status: lag ${lagMs}`)
  })
}

test('with a feed that only returns empty lists, the age of the newest rows grows', async (t) => {
  const world = await startWorld(t)
  const stepped = steppedSource(t, world, file.store.postgres, 'aviation-weather')
  await stepped.run()
  const rowsAtMs = stepped.schedule.metrics()[0]?.lastRowsAtMs ?? null
  world.fault = () => send(200, '[]', { 'content-type': 'application/json' })
  for (let round = 0; round < 5; round++) await stepped.run()
  const scrape = await Scrape.of(
    () => ({ ...NOTHING, tasks: stepped.schedule.metrics() }),
    newestRowsOf(file.store.postgres),
  )
  const task = { task: 'aviation-weather' }
  const rows = scrape.value('bookcast_collect_last_rows_timestamp_seconds', task)
  assert.equal(rows, rowsAtMs === null ? undefined : rowsAtMs / 1000)
  assert.ok((scrape.value('bookcast_collect_empty_runs_total', task) ?? 0) >= 5)
  // The latest row of the live feed by station; the archives have nothing newer.
  const newest = Object.fromEntries(
    world.entries.map(({ icaoId, reportTime }) => [icaoId.slice(1), Date.parse(String(reportTime)) / 1000]),
  )
  assert.deepEqual(scrape.byLabel('bookcast_newest_observation_timestamp_seconds'), newest)
  const at = scrape.value('bookcast_newest_row_timestamp_seconds', { dataset: 'observations', source: 'awc' })
  assert.equal(at, Math.max(...Object.values(newest)))
})

test('the proven share of the trades is the sum over all dates, each as last compared', async () => {
  const { postgres } = file.store
  const scrape = (): Promise<Scrape> => Scrape.of(() => NOTHING, undefined, tradeProofOf(postgres))
  const note = (scope: string, proof: readonly (readonly [string, readonly [number, number]])[]) =>
    noteTradeProof(postgres, { source: 'kalshi-trades', scope }, new Map(proof))
  await note('KXA', [['2026-07-01', [10, 9]]])
  await note('KXA', [['2026-07-02', [5, 0]]])
  await note('KXB', [['2026-07-01', [4, 4]]])
  await note('KXA', [['2026-07-02', [6, 6]]])
  assert.deepEqual((await scrape()).byLabel('bookcast_trades_minutes'), { compared: 20, proven: 19 })
})

// The recorder.

const SERIES = 'KXHIGHNY'
const FOLLOWED = [`${SERIES}-26NOV20-B45.5`, `${SERIES}-26NOV20-B47.5`] as const
const REFUSED = `${SERIES}-26NOV20-T49`
const UNPLACED = `${SERIES}-26NOV20-T50`
const KALSHI = { exchange: 'kalshi' }

test('the recorder metrics match what the exchange sent, through reconnects, refusals and a failing list', async (t) => {
  const exchange = await LocalKalshi.start(t)
  exchange.isKeepingTexts = true
  exchange.delayMs = 5_000
  for (const market of [...FOLLOWED, REFUSED]) exchange.markets.set(market, 'active')
  for (const market of FOLLOWED) exchange.setBook(market, [[0, 40, 1000]])
  exchange.unknownTickers.add(REFUSED)
  const http = new UpstreamHttp({
    name: 'kalshi',
    baseUrl: exchange.restUrl,
    userAgent: 'bookcast-test',
    rate: { burst: 1000, intervalMs: 1 },
    attemptsMax: 1,
  })
  t.after(() => http.close())
  const list = kalshiDirectory(http, [SERIES])
  let failedLists = 0
  const directory = {
    list: async (signal: AbortSignal) => {
      try {
        return await list.list(signal)
      } catch (error) {
        failedLists++
        throw error
      }
    },
  }
  const root = await temporaryDirectory(t)
  const startMs = Date.now()
  const { recorder, lake, workDirectory, log, settle } = await recordKalshi(t, exchange, root, [], {
    directory,
    marketsPerLaneMax: 3,
  })
  const scrape = (): Promise<Scrape> => Scrape.of(() => ({ ...NOTHING, recorders: [recorder.metrics] }))
  const value = async (name: string): Promise<number | undefined> =>
    (await scrape()).value(`bookcast_recorder_${name}`, KALSHI)
  const becomes = (name: string, wanted: number): Promise<void> =>
    eventually(async () => (await value(name)) === wanted, `${name} is ${wanted}`)

  await becomes('markets', FOLLOWED.length)
  await becomes('refused_markets', 1)
  // A fourth market has no room on the only connection.
  exchange.markets.set(UNPLACED, 'active')
  await becomes('unplaced_markets', 1)
  assert.equal(await value('listed_markets'), exchange.markets.size)
  assert.equal(await value('connections'), exchange.connections)
  assert.equal(await value('up'), 1)

  const change = (count: number): void => {
    for (let each = 0; each < count; each++) exchange.change(FOLLOWED[each % 2]!, 0, 40 + (each % 5), 100)
  }
  change(100)
  const beforeLastMs = Date.now()
  await settle()
  const sent = async (): Promise<void> => {
    await eventually(
      async () => (await value('messages_total')) === exchange.sentFrames,
      'each message is counted',
    )
  }
  await sent()
  // The messages of `settle` are not kept.
  const kept = exchange.sentTexts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  const bytes = (await value('received_bytes_total')) ?? 0
  assert.ok(
    bytes > kept && bytes < kept + 200 * (exchange.sentFrames - exchange.sentTexts.length),
    `${bytes}, ${kept}`,
  )
  const lastMessageS = (await value('last_message_timestamp_seconds')) ?? 0
  assert.ok(lastMessageS * 1000 >= beforeLastMs && lastMessageS * 1000 <= Date.now())
  const delayS = (await value('feed_delay_seconds')) ?? 0
  assert.ok(delayS >= 5 && delayS * 1000 <= 5_000 + Date.now() - startMs, `${delayS} s late`)
  const publishedS = (await value('published_timestamp_seconds')) ?? 0
  assert.ok(publishedS * 1000 >= startMs && publishedS * 1000 <= Date.now())
  assert.equal(await value('congestions_total'), 0, 'the disk was never slower than the feed')

  // Two connections break off: each is a gap in every known book.
  for (const round of [1, 2]) {
    exchange.dropConnections()
    await exchange.until(() => FOLLOWED.every((market) => exchange.isFollowed(market)))
    change(10)
    await settle()
    await becomes('gaps_total', round * FOLLOWED.length)
  }
  await sent()
  let found = ''
  await eventually(async () => {
    const rows = await readSeries(lake, 'kalshi', SERIES)
    // Without the gap at the end of a recording, after which the market has no rows.
    const isLast = (at: number): boolean =>
      !rows.slice(at + 1).some(({ market_id }) => market_id === rows[at]?.market_id)
    const gaps = rows.filter(({ event }, at) => event === 3 && !isLast(at))
    found = `${gaps.length} of ${rows.length} rows`
    return gaps.length === 2 * FOLLOWED.length
  }, 'the gaps are in the lake').catch((error: unknown) => assert.fail(`${String(error)}: ${found}`))

  exchange.refuseList = 500
  await eventually(() => failedLists > 2, 'the list fails')
  exchange.refuseList = undefined
  const lastFailed = failedLists
  await eventually(
    async () => (await value('discovery_failures_total')) === failedLists,
    'each failure is counted',
  )
  assert.ok(lastFailed > 2)
  assert.equal(await value('markets'), FOLLOWED.length, 'the same ones are followed on')

  await rename(lake, `${lake}.away`)
  // A running publication may create the directory again in between.
  await eventually(async () => {
    await rm(lake, { recursive: true, force: true })
    return await writeFile(lake, 'no directory').then(
      () => true,
      () => false,
    )
  }, 'a file is in the way')
  const failed = (): number => log.lines.filter((line) => line.startsWith('the fold of kalshi failed')).length
  await eventually(() => {
    change(10)
    return failed() > 0
  }, 'the lake cannot be written')
  await rm(lake)
  await rename(`${lake}.away`, lake)
  await eventually(
    async () => (await value('consolidation_failures_total')) === failed(),
    'each failure is counted',
  )

  await logBytesAreThere(lake, workDirectory)
  await recorder.stop()
  assert.equal(await value('up'), 0)
  assert.equal(await value('queued_bytes'), 0, 'everything is on disk')
  assert.equal(await value('connections'), exchange.connections)
})

async function bytesOf(directory: string, ending: string): Promise<number> {
  const names = (await readdir(directory, { recursive: true })).filter((name) => name.endsWith(ending))
  const hidden = (name: string): boolean => name.split('/').some((part) => part.startsWith('.'))
  const sizes = await Promise.all(
    names.filter((name) => !hidden(name)).map(async (name) => (await stat(join(directory, name))).size),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Compares the reported sizes with the files; the log may grow between the two reads. */
async function logBytesAreThere(lake: string, work: string): Promise<void> {
  const watch = new StorageWatch({
    lake,
    recorder: work,
    data: null,
    temporary: lake,
    logger: new LogLines(),
  })
  const log = (): Promise<number> => bytesOf(join(work, 'wal/kalshi'), '.wal')
  const least = await log()
  const storage = await watch.look()
  const scrape = await Scrape.of(() => ({ ...NOTHING, storage }))
  const told = scrape.value('bookcast_recorder_log_bytes', KALSHI) ?? 0
  assert.ok(least > 0 && told >= least && told <= (await log()), `${told} bytes of log`)
}

// Disks, the lake, synchronization.

test('the sizes of disks and of the lake are those of the file system', async (t) => {
  await onSmallDisk(t, 8, async (disk) => {
    const lake = join(disk.path, 'lake')
    await cp(SAMPLE_LAKE, lake, { recursive: true })
    const watch = new StorageWatch({
      lake,
      recorder: null,
      data: null,
      temporary: lake,
      logger: new LogLines(),
    })
    const scrape = async (): Promise<Scrape> => {
      const storage = await watch.look()
      return Scrape.of(() => ({ ...NOTHING, storage }))
    }
    for (const isLow of [0, 1]) {
      if (isLow === 1) await disk.fill()
      const { bavail, blocks, bsize } = await statfs(lake)
      const seen = await scrape()
      const place = { place: 'lake' }
      assert.equal(seen.value('bookcast_disk_free_bytes', place), bavail * bsize)
      assert.equal(seen.value('bookcast_disk_size_bytes', place), blocks * bsize)
      assert.equal(seen.value('bookcast_disk_low', place), isLow)
      assert.equal(seen.value('bookcast_lake_bytes', place), await bytesOf(lake, '.parquet'))
    }
  })
})

test('a push counts the transferred files and the conflicts', async (t) => {
  const root = await temporaryDirectory(t)
  const [lake, remote] = [join(root, 'lake'), join(root, 'remote')]
  const path = 'candles/series=A/month=2026-07/candles.parquet'
  await mkdir(dirname(join(lake, path)), { recursive: true })
  await mkdir(remote)
  await writeFile(join(lake, path), 'ours')
  const push = lakeSyncSchedule({
    lake,
    remote: new DirectoryStore(remote),
    direction: 'push',
    clock: { nowMs: () => Date.now(), sleep: (_, signal) => untilAborted(signal) },
  })
  t.after(() => push.close())
  const scrape = (): Promise<Scrape> =>
    Scrape.of(() => ({ ...NOTHING, tasks: [push.metrics], syncs: [push.figures] }))
  const task = { task: 'lake-push' }
  await push.start()
  const first = await scrape()
  assert.equal(first.value('bookcast_collect_rows_total', task), 1)
  assert.equal(first.value('bookcast_sync_conflicts', task), 0)
  // Another writer changes the object in object storage, and the lake's own file changes, too.
  await writeFile(join(remote, path), 'theirs, and longer')
  await writeFile(join(lake, path), 'ours, and changed since')
  push.wake()
  await eventually(
    async () => (await scrape()).value('bookcast_sync_conflicts', task) === 1,
    'the conflict is told',
  )
  const second = await scrape()
  assert.equal(second.value('bookcast_collect_rows_total', task), 1, 'nothing was transferred')
  assert.equal(second.value('bookcast_collect_errors_total', task), 1, 'a conflict is an error')
})

function untilAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
  })
}

test('every metric of a collector has been compared', async () => {
  logLosses.droppedBytes = 7
  const scrape = await Scrape.of(() => NOTHING)
  assert.equal(scrape.value('bookcast_log_dropped_bytes_total', {}), 7)
  const build = { version: readVersion(), node: process.versions.node }
  assert.equal(scrape.value('bookcast_build_info', build), 1)
  assert.ok(exported.size > 25)
  assert.deepEqual([...exported].filter((name) => !held.has(name)).toSorted(), [])
})
