// /health: its exact shape, failures of each dependency, staleness, and the cost of a request.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { pino } from 'pino'
import { healthMonitor, type HealthReport, type HealthSources } from '../../server/health/health-monitor.ts'
import { LakeScan } from '../../server/health/lake-scan.ts'
import { HEALTH_STALE_MS } from '../../shared/limits.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const NOW_MS = Date.UTC(2026, 6, 3, 12)

function monitor(sources: Partial<HealthSources>): () => Promise<HealthReport> {
  const sync = { lastSyncMs: NOW_MS - HEALTH_STALE_MS, fileCount: 7 }
  return healthMonitor({
    embeddedDb: async () => true,
    hostedDb: async () => true,
    sync: () => sync,
    nowMs: () => NOW_MS,
    ...sources,
  })
}

test('reports the shape of the interface from real checks', async (t) => {
  const { url, store } = await startSampleServer(t)
  let report: { sync: { last_sync: string | null } } & Record<string, unknown>
  do report = JSON.parse(await (await fetch(`${url}/health`)).text())
  while (report.sync.last_sync === null)
  assert.deepEqual(Object.keys(report), ['status', 'embedded_db', 'hosted_db', 'sync', 'samples'])
  assert.deepEqual(report, {
    status: 'ok',
    embedded_db: 'ok',
    hosted_db: 'ok',
    sync: { last_sync: report.sync.last_sync, file_count: 15, is_stale: false },
    // Only with sample books.
    samples: { files: 12, records: false },
  })
  store.isAway = true
  for (;;) {
    const { status, hosted_db }: Record<string, unknown> = JSON.parse(
      await (await fetch(`${url}/health`)).text(),
    )
    if (hosted_db === 'ok') continue
    assert.deepEqual([status, hosted_db], ['degraded', 'error'])
    break
  }
})

test('states the proven share of the trades if any were compared', async () => {
  const proven = await monitor({ tradeProof: async () => ({ minutes: 200, proven: 150 }) })()
  assert.deepEqual(proven.trades, { minutes: 200, proven: 150, share: 0.75 })
  assert.ok(!('trades' in (await monitor({ tradeProof: async () => undefined })())))
})

test('is degraded if any part is, and names the part', async () => {
  const cases = [
    [{}, 'ok ok ok false'],
    [{ embeddedDb: async () => false }, 'degraded error ok false'],
    [{ hostedDb: async () => false }, 'degraded ok error false'],
    [{ hostedDb: null }, 'ok ok off false'],
    [{ sync: () => ({ lastSyncMs: NOW_MS - HEALTH_STALE_MS - 1, fileCount: 7 }) }, 'degraded ok ok true'],
    [{ sync: () => ({ lastSyncMs: null, fileCount: 0 }) }, 'ok ok ok false'],
  ] as const
  for (const [sources, expected] of cases) {
    const { status, embedded_db, hosted_db, sync } = await monitor(sources)()
    assert.equal(`${status} ${embedded_db} ${hosted_db} ${sync.is_stale}`, expected)
  }
  let nowMs = NOW_MS
  const never = monitor({ sync: () => ({ lastSyncMs: null, fileCount: 0 }), nowMs: () => nowMs })
  nowMs += HEALTH_STALE_MS + 1
  const { sync } = await never()
  assert.deepEqual(sync, { last_sync: null, file_count: 0, is_stale: true })
})

test('checks the databases once for all requests within a second', async () => {
  let asked = 0
  let nowMs = NOW_MS
  const shared = monitor({
    nowMs: () => nowMs,
    hostedDb: async () => {
      asked += 1
      return true
    },
  })
  await Promise.all(Array.from({ length: 100 }, () => shared()))
  assert.equal(asked, 1)
  nowMs += 1001
  await shared()
  assert.equal(asked, 2)
})

test('without a store, the embedded database is loaded by the first check, outside the main thread', async (t) => {
  const records = new URL('../../server/records/record-pool.js', import.meta.url).href
  const script = join(await temporaryDirectory(t), 'ask.mjs')
  writeFileSync(
    script,
    `import { RECORD_WORKER_URL, RecordPool } from '${records}'
    const logger = { error: console.error, warn: console.error }
    const pool = new RecordPool({ lake: '.', store: null, workerUrl: RECORD_WORKER_URL, logger })
    // A thread that has not started cannot answer at once.
    const isOkAtOnce = await pool.checkDatabase(0)
    const isOk = await pool.checkDatabase(6_000)
    const loaded = process.report.getReport().sharedObjects.some((path) => path.includes('duckdb.node'))
    const { createRequire } = await import('node:module')
    const here = Object.keys(createRequire('${records}').cache).filter((path) => path.includes('duckdb'))
    await pool.close()
    console.log(JSON.stringify({ isOkAtOnce, isOk, loaded, here }))`,
  )
  const { stdout } = await promisify(execFile)(process.execPath, [script])
  assert.deepEqual(JSON.parse(stdout), { isOkAtOnce: false, isOk: true, loaded: true, here: [] })
})

test('counts parquet files at any depth, and keeps the last count if the directory cannot be read', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  const scan = new LakeScan(lake, pino({ level: 'silent' }))
  t.after(() => scan.close())
  void scan.start()
  await scan.close()
  assert.deepEqual(scan.status, { lastSyncMs: null, fileCount: 0 })
  cpSync(SAMPLE_LAKE, lake, { recursive: true })
  const month = join(lake, 'candles', 'series=X', 'month=2026-07')
  mkdirSync(month, { recursive: true })
  writeFileSync(join(month, 'candles.parquet'), '')
  writeFileSync(join(month, '.candles.parquet'), '')
  writeFileSync(join(lake, 'candles', 'notes.txt'), '')
  const again = new LakeScan(lake, pino({ level: 'silent' }))
  t.after(() => again.close())
  void again.start()
  while (again.status.lastSyncMs === null) await new Promise(setImmediate)
  assert.equal(again.status.fileCount, 16)
})
