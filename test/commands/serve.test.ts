// `bookcast serve` as users and orchestrators run it: a process with arguments, output, signals and an exit code.

import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openRelationalStore } from '../../server/storage/relational-store.ts'
import { PROGRAM_ARGUMENTS } from '../support/cold-workers.ts'
import { bookcast } from '../support/program.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'
import { soon } from '../support/collecting-process.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { makeEmbeddedStore, makeEmptyStore, SERVER_URL } from '../support/postgres.ts'
import { startWorld } from '../support/upstream-world.ts'
import { lobFilePath } from '../../shared/lake-layout.ts'
import { type LobSource } from '../../shared/lob-sources.ts'

const SAMPLE_LAKE = fileURLToPath(new URL('../../../data-samples/lake', import.meta.url))
// Six markets with a row every two seconds of a day: more than the socket buffers of both ends hold.
const LONG_ANSWER = '/api/v1/lob?series=KXHIGHNY-26JUL02&date=2026-07-02&interval=2&format=csv'

async function makeLake(t: TestContext, files: readonly [LobSource, string, string][]): Promise<string> {
  const lake = await mkdtemp(join(tmpdir(), 'bookcast-serve-'))
  t.after(() => rm(lake, { recursive: true }))
  for (const file of files) {
    const path = lobFilePath(lake, ...file)
    await mkdir(join(path, '..'), { recursive: true })
    await writeFile(path, '')
  }
  return lake
}

interface ServeProcess {
  readonly child: ChildProcessWithoutNullStreams
  readonly stdout: () => string
  readonly stderr: () => string
  readonly exit: Promise<number | string>
}

function runServe(t: TestContext, args: readonly string[], env: NodeJS.ProcessEnv = {}): ServeProcess {
  const child = spawn(process.execPath, [...PROGRAM_ARGUMENTS, 'serve', ...args], {
    env: { ...process.env, BOOKCAST_STORE: 'off', ...env },
  })
  t.after(() => child.kill('SIGKILL'))
  const texts = { stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => (texts.stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (texts.stderr += text))
  const exit = once(child, 'close').then(([code, signal]): number | string => code ?? signal)
  return { child, stdout: () => texts.stdout, stderr: () => texts.stderr, exit }
}

/** Resolves when the output so far satisfies `isWanted`; fails if the process ends before. */
async function heard(serving: ServeProcess, isWanted: () => boolean): Promise<void> {
  const ended = (async () => {
    const code = await serving.exit
    if (!isWanted()) throw new Error(`serve ended with ${code}: ${serving.stderr()}`)
  })()
  while (!isWanted()) {
    // The listener of the other stream must be removed.
    const heardOne = new AbortController()
    const texts = [serving.child.stdout, serving.child.stderr].map((stream) =>
      once(stream, 'data', { signal: heardOne.signal }),
    )
    await Promise.race([...texts, ended])
    heardOne.abort()
    await Promise.allSettled(texts)
  }
}

/** The server's start message, once it is complete. */
async function greeting(serving: ServeProcess): Promise<string> {
  await heard(serving, () => /(parquet|some\.)\n$/.test(serving.stdout()))
  return serving.stdout()
}

test('prints its address and three requests that the sample lake answers', async (t) => {
  const serving = runServe(t, ['--lake', SAMPLE_LAKE, '--port', '0'])
  const text = await greeting(serving)
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? []
  assert.equal(
    text,
    `Bookcast serves ${SAMPLE_LAKE} at ${url}
Open ${url}/ in a browser, or try:
  curl '${url}/api/v1/lob?series=KXHIGHCHI&date=2026-07-03&hour=18&interval=300&levels=3'
  curl '${url}/api/v1/lob?series=KXHIGHCHI&date=2026-07-03&format=ndjson'
  curl '${url}/api/v1/lob?series=KXHIGHCHI&date=2026-07-03&format=parquet' --output KXHIGHCHI_2026-07-03.parquet
`,
  )
  const [json = '', ndjson = '', parquet = ''] = [...text.matchAll(/curl '([^']+)'/g)].map(
    ([, address]) => address,
  )
  assert.ok(((await (await fetch(json)).json()) as unknown[]).length > 0)
  assert.match(await (await fetch(ndjson)).text(), /^\{"ts":\d+,[^]*\}\n$/)
  const file = Buffer.from(await (await fetch(parquet)).arrayBuffer())
  assert.equal(file.toString('latin1', 0, 4), 'PAR1')
  assert.equal(file.toString('latin1', file.length - 4), 'PAR1')
  serving.child.kill('SIGTERM')
  assert.equal(await serving.exit, 0)
  const lines = serving
    .stderr()
    .trim()
    .split('\n')
    .map((line): { msg: string } => JSON.parse(line))
  const samples = 'the lake holds samples: invented order books'
  const messages = lines.map((line) => line.msg).filter((msg) => !msg.startsWith('serving with node:http: '))
  assert.ok(messages.includes(samples))
  assert.deepEqual(
    messages.filter((msg) => msg !== samples),
    ['listening', 'request', 'request', 'request', 'shutting down', 'stopped'],
  )
})

test('offers the second source if the lake has no other, and reports an empty lake', async (t) => {
  const polymarket = await makeLake(t, [['polymarket', 'nyc', '2026-07-02']])
  const first = runServe(t, ['--lake', polymarket, '--port', '0', '--log-level', 'silent'])
  assert.match(await greeting(first), /lob\?source=polymarket&series=nyc&date=2026-07-02&hour=18/)
  const empty = runServe(t, ['--port', '0'], { BOOKCAST_LAKE: await makeLake(t, []) })
  assert.match(await greeting(empty), /no order books yet; "bookcast import" adds some\.\n$/)
  for (const serving of [first, empty]) {
    serving.child.kill('SIGINT')
    assert.equal(await serving.exit, 0)
  }
  assert.equal(first.stderr(), '')
})

test('the suggested request is for an hour that the recording covers, with a key if one is needed', async (t) => {
  const lake = await temporaryDirectory(t)
  const recording = join(lake, 'recording.ndjson')
  // Two and a half minutes of the morning, before the busy hour.
  const frames = [
    {
      type: 'orderbook_snapshot',
      sid: 1,
      seq: 1,
      msg: { market_ticker: 'KXHIGHNY-26JUL02-B80.5', yes: [[40, 5]], no: [[50, 5]] },
    },
    {
      type: 'orderbook_delta',
      sid: 1,
      seq: 2,
      msg: { market_ticker: 'KXHIGHNY-26JUL02-B80.5', price: 41, delta: 2, side: 'yes' },
    },
  ]
  const times = ['2026-07-02T09:10:10Z', '2026-07-02T09:12:40Z']
  const lines = frames.map((frame, index) => JSON.stringify({ ts: times[index], ...frame }))
  await writeFile(recording, `${lines.join('\n')}\n`)
  assert.equal((await bookcast(['import', '--source', 'kalshi', '--lake', lake, recording])).code, 0)
  const key = 'a-key-of-sixteen-characters'
  const serving = runServe(t, ['--lake', lake, '--port', '0'], { BOOKCAST_API_KEYS: `quant=${key}` })
  const [, header = '', url = ''] =
    / {2}curl -H "(X-API-Key: \$BOOKCAST_API_KEY)" '([^']+)'\n/.exec(await greeting(serving)) ?? []
  assert.match(url, /&hour=9&/)
  const [name = '', value = ''] = header.replace('$BOOKCAST_API_KEY', key).split(': ')
  const rows = (await (await fetch(url, { headers: { [name]: value } })).json()) as { best_bid: number }[]
  assert.deepEqual(
    rows.map((row) => row.best_bid),
    [40, 40],
  )
})

/** Compressed, the long response would fit into the buffers of the connection and complete at once. */
function fetchUncompressed(address: string): Promise<Response> {
  return fetch(address, { headers: { 'Accept-Encoding': 'identity' } })
}

test('lets a running stream finish after SIGTERM and exits 0', async (t) => {
  const serving = runServe(t, ['--lake', SAMPLE_LAKE, '--port', '0'])
  const [url] = /http:\S+/.exec(await greeting(serving)) ?? []
  const whole = await (await fetchUncompressed(url + LONG_ANSWER)).text()
  const response = await fetchUncompressed(url + LONG_ANSWER)
  assert.equal(response.status, 200)
  serving.child.kill('SIGTERM')
  await heard(serving, () => serving.stderr().includes('shutting down'))
  assert.equal((await fetch(`${url}/livez`)).status, 503)
  const text = await response.text()
  assert.ok(text.length > 10_000_000 && text === whole)
  assert.equal(await serving.exit, 0)
})

test('exits at once at the second signal', async (t) => {
  const serving = runServe(t, ['--lake', SAMPLE_LAKE, '--port', '0'])
  const [url] = /http:\S+/.exec(await greeting(serving)) ?? []
  const response = await fetchUncompressed(url + LONG_ANSWER)
  assert.equal(response.status, 200)
  serving.child.kill('SIGTERM')
  await heard(serving, () => serving.stderr().includes('shutting down'))
  serving.child.kill('SIGTERM')
  assert.equal(await serving.exit, 143)
  await assert.rejects(response.arrayBuffer())
})

test('exits 1 without a lake directory, and when the port is taken', async (t) => {
  const missing = runServe(t, ['--lake', '/no/such/lake'])
  assert.equal(await missing.exit, 1)
  assert.equal(missing.stderr(), 'bookcast serve: there is no lake directory at /no/such/lake\n')
  const lake = await makeLake(t, [])
  const holder = runServe(t, ['--lake', lake, '--port', '0'])
  const [, port] = /:(\d+)\n/.exec(await greeting(holder)) ?? []
  const second = runServe(t, ['--lake', lake, '--port', port ?? ''])
  assert.equal(await second.exit, 1)
  assert.match(second.stderr(), /cannot listen on 127\.0\.0\.1 port \d+: .*\? Port 0 is any free one\.\n$/)
})

test('keeps its catalogue in an embedded database if no other is configured', async (t) => {
  const place = await makeEmbeddedStore('no tables')
  t.after(() => place.remove())
  const env = { BOOKCAST_STORE: 'on', DATABASE_URL: '', BOOKCAST_DATA_DIR: place.dataDirectory }
  const serving = runServe(t, ['--lake', SAMPLE_LAKE, '--port', '0'], env)
  const url = /http:\/\/[\d.:]+/.exec(await greeting(serving))?.[0] ?? ''
  // On a busy machine the first read of the catalogue may fail, and the first health check may time out.
  const isReady = async () => (await fetch(`${url}/readyz`)).status === 200
  await soon(isReady, () => `not ready: ${serving.stderr()}`)
  assert.equal(await (await fetch(`${url}/api/v1/series`)).text(), '[]')
  const health = async () => (await (await fetch(`${url}/health`)).json()) as { hosted_db: string }
  await soon(
    async () => (await health()).hosted_db === 'ok',
    () => `not healthy: ${serving.stderr()}`,
  )
  serving.child.kill('SIGTERM')
  assert.equal(await serving.exit, 0)
})

test('collects in its own process on request, and serves the collected rows', async (t) => {
  const place = await makeEmbeddedStore()
  t.after(() => place.remove())
  const { config } = await startWorld(t)
  const env = {
    BOOKCAST_STORE: 'on',
    DATABASE_URL: '',
    BOOKCAST_DATA_DIR: place.dataDirectory,
    BOOKCAST_COLLECT: 'true',
    BOOKCAST_LOG_LEVEL: 'debug',
    BOOKCAST_KALSHI_URL: config.kalshiUrl,
    BOOKCAST_AVIATION_WEATHER_URL: config.aviationWeatherUrl,
    BOOKCAST_IEM_URL: config.iemUrl,
    BOOKCAST_NCEI_URL: config.nceiUrl,
    BOOKCAST_NWS_URL: config.nwsUrl,
    BOOKCAST_ACIS_URL: config.acisUrl,
  }
  // The days are long closed, so they also move to the lake, which must not be the sample.
  const serving = runServe(t, ['--lake', await makeLake(t, []), '--port', '0'], env)
  const url = /http:\/\/[\d.:]+/.exec(await greeting(serving))?.[0] ?? ''
  await heard(serving, () =>
    /"source":"aviation-weather".*"rows":2/.test(serving.stdout() + serving.stderr()),
  )
  const query = 'from=2026-08-30T00:00:00Z&to=2026-08-31T00:00:00Z&columns=station_code'
  const answer = await fetch(`${url}/api/v1/observations?${query}`)
  assert.deepEqual(await answer.json(), [{ station_code: 'NYC' }, { station_code: 'MIA' }])
  serving.child.kill('SIGTERM')
  assert.equal(await serving.exit, 0)
})

test('--check-config prints the configuration without secrets and exits', async (t) => {
  const env = { BOOKCAST_API_KEYS: 'charts=a-secret-of-this-test' }
  const good = runServe(t, ['--lake', SAMPLE_LAKE, '--check-config'], env)
  assert.equal(await good.exit, 0)
  const shown: { apiKeys: string[] } = JSON.parse(good.stdout())
  assert.deepEqual(shown.apiKeys, ['charts'])
  const bad = runServe(t, ['--lake', SAMPLE_LAKE, '--check-config', '--rate-limit', 'fast'], env)
  assert.equal(await bad.exit, 2)
  assert.match(bad.stderr(), /--rate-limit must be a number/)
  assert.ok(!`${good.stdout()}${good.stderr()}${bad.stderr()}`.includes('a-secret'))
})

test('exits with a message if the tables of DATABASE_URL do not match this version', async (t) => {
  const place = await makeEmptyStore()
  t.after(() => place.remove())
  const store = await openRelationalStore(place)
  t.after(() => store.close())
  await store.migrate()
  const text = "INSERT INTO schema_migrations (name, checksum) VALUES ('9999_later.sql', 'x')"
  await store.postgres.run({ text, parameters: [] })
  const { address } = store.postgres
  // The embedded store acts as the server, behind a TCP port.
  const proxy = address.kind === 'embedded' ? await FaultProxy.toSocket(address.socketPath) : undefined
  t.after(() => proxy?.refuse())
  const url =
    SERVER_URL === null
      ? `postgres://postgres@127.0.0.1:${proxy?.port}/postgres?sslmode=disable`
      : place.databaseUrl
  const serving = runServe(t, ['--lake', SAMPLE_LAKE, '--port', '0'], {
    BOOKCAST_STORE: 'on',
    DATABASE_URL: url ?? '',
  })
  assert.equal(await serving.exit, 1)
  assert.match(
    serving.stderr(),
    /bookcast serve: The store has the migration 9999_later\.sql, which this version/,
  )
  assert.doesNotMatch(serving.stderr(), /Unhandled|ERR_UNHANDLED|    at /)
})

test('serves, and stops at a signal, even if its log cannot be written', async (t) => {
  const [node, ...args] = [
    process.execPath,
    ...PROGRAM_ARGUMENTS,
    'serve',
    '--lake',
    SAMPLE_LAKE,
    '--port',
    '0',
  ]
  const command = `exec ${[node, ...args].join(' ')} 2> /dev/full`
  const child = spawn('bash', ['-c', command], { env: { ...process.env, BOOKCAST_STORE: 'off' } })
  t.after(() => child.kill('SIGKILL'))
  const [greeted] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string]
  const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(greeted) ?? []
  for (let request = 0; request < 3; request += 1) {
    assert.equal((await fetch(`${url}/livez`)).status, 200)
    await delay(150)
  }
  child.kill('SIGTERM')
  assert.deepEqual(await once(child, 'exit'), [0, null])
})
