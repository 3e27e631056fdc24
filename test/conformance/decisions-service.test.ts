// decisions.md, "Health" and "Security defaults": a test for each sentence, in their order.

import assert from 'node:assert/strict'
import { cp } from 'node:fs/promises'
import { createServer } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { describeConfig, readServeCall, type ServeConfig } from '../../server/service/config.ts'
import { healthMonitor } from '../../server/health/health-monitor.ts'
import { LakeScan } from '../../server/health/lake-scan.ts'
import { sha256Hex } from '../../server/http/api-keys.ts'
import { startColdServer } from '../support/cold-workers.ts'
import { type JsonRecord, serviceOfThisFile } from '../support/conformance-service.ts'
import { MemoryStore } from '../support/memory-store.ts'
import { SAMPLE_LAKE, startSampleServer } from '../support/sample-server.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { startTestServer, TEST_CONFIG, until } from '../support/test-server.ts'

const file = serviceOfThisFile()

const KEY = 'a-key-of-enough-characters'

async function healthOf(url: string): Promise<{ status: number; report: JsonRecord }> {
  const response = await fetch(`${url}/health`)
  return { status: response.status, report: JSON.parse(await response.text()) }
}

/** Polls /health until it is as wanted: a database opens slowly, and the lake is being scanned. */
async function awaitedHealthOf(
  url: string,
  wanted: JsonRecord,
): Promise<{ status: number; report: JsonRecord }> {
  for (;;) {
    const health = await healthOf(url)
    const sync = health.report['sync'] as JsonRecord
    const isWanted = Object.entries(wanted).every(([name, value]) => health.report[name] === value)
    if (isWanted && sync['last_sync'] !== null) return health
  }
}

test('health is 200 with status ok and the shape of the interface', async () => {
  const { status, report } = await awaitedHealthOf(file.service.url, { status: 'ok' })
  assert.equal(status, 200)
  const { last_sync } = report['sync'] as JsonRecord
  assert.deepEqual(report, {
    status: 'ok',
    embedded_db: 'ok',
    hosted_db: 'ok',
    sync: { last_sync, file_count: 15, is_stale: false },
    // An additional field, only if sample data is served.
    samples: { files: 12, records: false },
  })
})

test('health is 200 with status degraded, and error where a database does not answer its query', async (t) => {
  const store = new MemoryStore()
  const { url } = await startSampleServer(t, {}, store)
  store.isAway = true
  const hosted = { status: 'degraded', embedded_db: 'ok', hosted_db: 'error' }
  assert.equal((await awaitedHealthOf(url, hosted)).status, 200)
  const server = await startColdServer(
    { ...TEST_CONFIG, lake: SAMPLE_LAKE },
    {
      logger: pino({ level: 'silent' }),
      store: new MemoryStore(),
      checkEmbeddedDb: async () => false,
    },
  )
  t.after(() => server.close())
  const embedded = { status: 'degraded', embedded_db: 'error', hosted_db: 'ok' }
  assert.equal((await awaitedHealthOf(`http://127.0.0.1:${server.port}`, embedded)).status, 200)
})

test('the databases are asked with a short time-out', async () => {
  const asked: number[] = []
  const check = async (timeoutMs: number): Promise<boolean> => {
    asked.push(timeoutMs)
    return true
  }
  const sync = () => ({ lastSyncMs: 0, fileCount: 0 })
  await healthMonitor({ embeddedDb: check, hostedDb: check, sync })()
  assert.equal(asked.length, 2)
  assert.ok(asked.every((timeoutMs) => timeoutMs > 0 && timeoutMs <= 1000))
})

test('sync.last_sync is null before the first sync', async (t) => {
  const lake = join(await temporaryDirectory(t), 'not-there')
  const { url } = await startTestServer(t, { lake })
  const { status, report } = await healthOf(url)
  assert.equal(status, 200)
  assert.deepEqual(report['sync'], { last_sync: null, file_count: 0, is_stale: false })
})

test('without object storage a scan of the lake directory counts as the sync', async (t) => {
  const lake = join(await temporaryDirectory(t), 'lake')
  await cp(SAMPLE_LAKE, lake, { recursive: true })
  const scan = new LakeScan(lake, pino({ level: 'silent' }))
  const beforeMs = Date.now()
  t.after(() => scan.close())
  void scan.start()
  await until(() => scan.status.lastSyncMs !== null)
  const { lastSyncMs, fileCount } = scan.status
  assert.ok(Number(lastSyncMs) >= beforeMs)
  assert.equal(fileCount, 15)
})

test('liveness and readiness are separate: a store that was never there fails /readyz alone', async (t) => {
  const ready = await file.service.get('/readyz')
  assert.deepEqual([ready.status, (await file.service.get('/livez')).status], [200, 200])
  const store = new MemoryStore()
  store.isAway = true
  const { url } = await startSampleServer(t, {}, store)
  const statuses = await Promise.all(
    ['/livez', '/health', '/readyz'].map(async (path) => (await fetch(url + path)).status),
  )
  assert.deepEqual(statuses, [200, 200, 503])
})

function configOf(args: readonly string[], env: NodeJS.ProcessEnv = {}): ServeConfig {
  const call = readServeCall(['--lake', 'l', ...args], env)
  assert.ok(call !== 'help')
  return call.config
}

test('binds loopback unless told otherwise', async (t) => {
  assert.equal(configOf([]).host, '127.0.0.1')
  assert.equal(configOf(['--host', '0.0.0.0']).host, '0.0.0.0')
  const { host } = configOf([])
  const { server } = await startTestServer(t, { host })
  const others = Object.values(networkInterfaces())
    .flat()
    .filter((address) => address !== undefined && !address.internal && address.family === 'IPv4')
  // The port is free on every non-loopback address.
  for (const address of others) {
    const probe = createServer()
    await new Promise<void>((resolve, reject) => {
      probe.once('error', reject)
      probe.listen({ host: address?.address, port: server.port }, resolve)
    })
    await new Promise((resolve) => probe.close(resolve))
  }
})

test('needs no credentials by default', async () => {
  assert.deepEqual(configOf([]).apiKeys, [])
  assert.equal((await file.service.get('/api/v1/series')).status, 200)
})

test('API keys are optional configuration, and taken from headers only', async (t) => {
  const { apiKeys } = configOf([], { BOOKCAST_API_KEYS: `charts=${KEY}` })
  const { url } = await startSampleServer(t, { apiKeys })
  const series = `${url}/api/v1/series`
  assert.equal((await fetch(series)).status, 401)
  for (const headers of [{ 'x-api-key': KEY }, { authorization: `Bearer ${KEY}` }] as Record<
    string,
    string
  >[])
    assert.equal((await fetch(series, { headers })).status, 200)
  for (const name of ['api_key', 'key', 'x-api-key', 'token'])
    assert.equal((await fetch(`${series}?${name}=${KEY}`)).status, 401)
})

test('per-client rate limits are optional configuration', async (t) => {
  assert.equal(configOf([]).rateLimit, null)
  const { rateLimit } = configOf(['--rate-limit', '0.001', '--rate-burst', '2'])
  const { url } = await startSampleServer(t, { rateLimit })
  const statuses: number[] = []
  for (let count = 0; count < 3; count++) statuses.push((await fetch(`${url}/api/v1/series`)).status)
  assert.deepEqual(statuses, [200, 200, 429])
})

test('CORS is off unless configured', async (t) => {
  assert.deepEqual(configOf([]).corsOrigins, [])
  const headers = { origin: 'https://charts.example' }
  const off = await file.service.get('/api/v1/series', { headers })
  assert.equal(off.headers.get('access-control-allow-origin'), null)
  const { corsOrigins } = configOf(['--cors-origins', 'https://charts.example'])
  const { url } = await startSampleServer(t, { corsOrigins })
  const on = await fetch(`${url}/api/v1/series`, { headers })
  assert.equal(on.headers.get('access-control-allow-origin'), 'https://charts.example')
  const other = await fetch(`${url}/api/v1/series`, { headers: { origin: 'https://other.example' } })
  assert.equal(other.headers.get('access-control-allow-origin'), null)
})

test('secrets come from the environment and are not shown with the configuration', () => {
  const env = { BOOKCAST_API_KEYS: `charts=${KEY}`, DATABASE_URL: 'postgres://me:pass-word@db/bookcast' }
  const config = configOf([], env)
  assert.deepEqual(config.apiKeys, [{ name: 'charts', sha256: sha256Hex(KEY) }])
  const shown = describeConfig(config)
  assert.doesNotMatch(shown, /a-key-of|pass-word/)
  assert.ok(!shown.includes(sha256Hex(KEY)))
})

test('secrets never reach a log', async (t) => {
  const { apiKeys } = configOf([], { BOOKCAST_API_KEYS: `charts=${KEY}` })
  const { url, log } = await startTestServer(t, { apiKeys, logLevel: 'trace' })
  const target = `${url}/api/v1/series`
  await fetch(target, { headers: { 'x-api-key': KEY } })
  await fetch(target, { headers: { authorization: `Bearer ${KEY}` } })
  await fetch(target, { headers: { 'x-api-key': `${KEY}-but-wrong` } })
  // Where it does not belong, too.
  await fetch(`${target}?api_key=${KEY}`)
  await fetch(`${target}?limit=1&Access_Token=${KEY}&a=b`, { headers: { 'x-api-key': KEY } })
  const lines = await log.find(({ path }) => path === '/api/v1/series', 5)
  assert.ok(!JSON.stringify(log.lines).includes(KEY))
  assert.deepEqual(
    lines.map(({ query }) => query),
    ['', '', '', 'api_key=...', 'limit=1&Access_Token=...&a=b'],
  )
})
