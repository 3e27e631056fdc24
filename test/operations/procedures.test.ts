// Each procedure of the operating page, with exactly its commands, against a real PostgreSQL, an S3 server and a local exchange.

import assert from 'node:assert/strict'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import postgres from 'postgres'
import { freePort } from '../../bench/server-process.ts'
import { compactClosedDays } from '../../server/compaction/compaction.ts'
import { pollSource } from '../../server/ingest/run-source.ts'
import { RECORD_SOURCES } from '../../server/ingest/source.ts'
import { migrate, readMigrations } from '../../server/storage/migrations.ts'
import { openRelationalStore, type RelationalStore } from '../../server/storage/relational-store.ts'
import { soon } from '../support/collecting-process.ts'
import { startCollectingWorld } from '../support/collecting-world.ts'
import { runImport } from '../support/import-harness.ts'
import { delta, snapshot } from '../support/kalshi-frames.ts'
import { readTree } from '../support/lake-tree.ts'
import { commandsUnder, ROOT, type Running, Shell, startPostgres } from '../support/operating-page.ts'
import { makeEmbeddedStore } from '../support/postgres.ts'
import { checkAgainst, readSeries } from '../support/recorder-harness.ts'
import { SAMPLE_LAKE } from '../support/sample-server.ts'
import { startS3Server } from '../support/s3-server.ts'
import { startWorld, worldContext, worldSource } from '../support/upstream-world.ts'

const MARKET = 'KXHIGHNY-26NOV20-B45.5'
const SERIES = 'KXHIGHNY'

async function objectStorage(t: TestContext): Promise<NodeJS.ProcessEnv> {
  const { endpoint } = await startS3Server(t)
  const key = 'S3RVER'
  return { BOOKCAST_S3_ENDPOINT: endpoint, AWS_ACCESS_KEY_ID: key, AWS_SECRET_ACCESS_KEY: key }
}

/** Addresses of fresh databases of a server. */
async function makeDatabases<const Names extends readonly string[]>(
  server: string,
  names: Names,
): Promise<{ readonly [Index in keyof Names]: string }> {
  const sql = postgres(server, { max: 1, onnotice: () => {} })
  const urls: string[] = []
  for (const name of names) {
    await sql.unsafe(`CREATE DATABASE ${name}`)
    urls.push(Object.assign(new URL(server), { pathname: `/${name}` }).href)
  }
  await sql.end()
  return urls as unknown as { readonly [Index in keyof Names]: string }
}

async function openStore(t: TestContext, databaseUrl: string): Promise<RelationalStore> {
  const store = await openRelationalStore({ databaseUrl, dataDirectory: '' })
  t.after(() => store.close())
  return store
}

/** Every row of every table. */
async function contents({ postgres: store }: RelationalStore): Promise<Record<string, readonly string[]>> {
  const run = (text: string) => store.run<{ text: string }>({ text, parameters: [] })
  const tables = await run(
    `SELECT tablename::text AS text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`,
  )
  const found: Record<string, readonly string[]> = {}
  for (const { text: table } of tables) {
    const rows = await run(`SELECT to_jsonb(t)::text AS text FROM ${table} t ORDER BY 1`)
    found[table] = rows.map(({ text }) => text)
  }
  return found
}

test('the whole set-up, each process with its command: both servers serve what the collector records', async (t) => {
  const [, , processes = '', proxy = ''] = await commandsUnder('Start the whole set')
  const databaseUrl = await startPostgres(t)
  if (databaseUrl === undefined) return
  const world = await startCollectingWorld(t)
  world.feed.markets.set(MARKET, 'active')
  world.feed.setBook(MARKET, [[0, 40, 1000]])
  const { directory } = await Shell.open(t, {})
  const env = {
    ...(await world.environment(directory)),
    ...(await objectStorage(t)),
    DATABASE_URL: databaseUrl,
  }
  const shell = await Shell.open(t, {
    ...env,
    BOOKCAST_INGEST_SOURCES: 'none',
    BOOKCAST_SYNC_INTERVAL_MS: '1000',
  })
  const ports = { '8081': String(await freePort()), '8082': String(await freePort()) }
  const set = swapped(processes, { ...ports, '127.0.0.1:9100': '127.0.0.1:0' })
    .trimEnd()
    .split('\n')
  const running = set.map((command) => shell.start(command))
  const said = () => running.map(({ output }) => output()).join('\n')
  for (const port of Object.values(ports))
    await soon(async () => {
      const url = `http://127.0.0.1:${port}/api/v1/lob/dates?series=${SERIES}`
      const dates = await fetch(url).then(
        (response) => response.json(),
        () => [],
      )
      return Array.isArray(dates) && dates.length > 0
    }, said)
  await soon(() => running.at(-1)!.output().includes('working on exports'), said)
  for (const each of running.toReversed()) {
    const { code, output } = await each.stop()
    assert.equal(code, 0, output)
  }
  const [addresses = ''] = proxy.split('\n')
  const places = { 'operations/': join(ROOT, 'operations/'), '/etc/nginx/': `${directory}/` }
  await shell.succeed(swapped(addresses, places))
  const config = await readFile(join(directory, 'nginx.conf'), 'utf8')
  const servers = [...config.matchAll(/^ +server (\S+) max_fails/gm)].map(([, address]) => address)
  assert.deepEqual(
    servers,
    Object.keys(ports).map((port) => `127.0.0.1:${port}`),
  )
})

test('a collector is replaced, and restored from object storage alone, without lost or wrong rows', async (t) => {
  const [push = '', commands = ''] = await commandsUnder('Replace or restore a collector')
  const world = await startCollectingWorld(t)
  const { feed } = world
  feed.markets.set(MARKET, 'active')
  feed.setBook(MARKET, [[0, 40, 1000]])
  const storage = await objectStorage(t)
  const place = await makeEmbeddedStore()
  t.after(place.remove)
  const machine = async (): Promise<Shell> => {
    const shell = await Shell.open(t, {})
    const upstreams = await world.environment(shell.directory)
    const common = {
      BOOKCAST_INGEST_SOURCES: 'none',
      BOOKCAST_KALSHI_SERIES: SERIES,
      BOOKCAST_SYNC_INTERVAL_MS: '1000',
    }
    const data = { BOOKCAST_DATA_DIR: place.dataDirectory, DATABASE_URL: '' }
    return Shell.open(t, { ...upstreams, ...storage, ...common, ...data })
  }
  /** Collects for a while, then stops as the page describes. */
  const collect = async (changes: number): Promise<void> => {
    const shell = await machine()
    const collecting: Running = shell.start(commands)
    await soon(
      () => feed.isFollowed(MARKET),
      () => `nothing is recorded: ${collecting.output()}`,
    )
    for (let change = 0; change < changes; change++) feed.change(MARKET, 0, 40 + (change % 5), 100)
    const last = [...feed.changes.keys()].at(-1)
    await soon(
      async () => {
        const rows = await readSeries(join(shell.directory, 'lake'), 'kalshi', SERIES).catch(() => [])
        return rows.some(({ seq }) => seq === last)
      },
      () => `the last change is not in the lake: ${collecting.output()}`,
    )
    const { code, output } = await collecting.stop()
    assert.equal(code, 0, output)
    // Everything is already pushed.
    await shell.succeed(push)
  }
  for (const changes of [50, 30, 20]) {
    await collect(changes)
    // These changes are not recorded.
    for (let change = 0; change < 10; change++) feed.change(MARKET, 0, 50, 100)
  }
  const checking = await machine()
  await checking.succeed('bookcast sync --lake ./lake --from s3://lake/v1')
  const rows = await readSeries(join(checking.directory, 'lake'), 'kalshi', SERIES)
  const { known, unknown, gaps } = checkAgainst(feed, rows)
  const seqs = new Set(rows.filter(({ event }) => event === 2).map(({ seq }) => seq))
  assert.deepEqual(
    [...feed.changes.keys()].filter((seq) => !seqs.has(seq)),
    [],
    'every change that was told has its row',
  )
  assert.deepEqual([known, unknown, gaps], [100, 0, 2])
})

test('a dump is restored with its lake', async (t) => {
  const [dump = '', restore = ''] = await commandsUnder('Back up and restore')
  const server = await startPostgres(t)
  if (server === undefined) return
  const [oldUrl, newUrl] = await makeDatabases(server, ['lost', 'restored'])
  const storage = await objectStorage(t)
  const before = await Shell.open(t, { ...storage, DATABASE_URL: oldUrl })
  const store = await openStore(t, oldUrl)
  await store.migrate()
  const world = await startWorld(t)
  for (const name of RECORD_SOURCES)
    await pollSource(worldSource(t, world, name), worldContext(store.postgres))
  const lake = join(before.directory, 'lake')
  const { clock, signal } = worldContext(store.postgres)
  await compactClosedDays({ postgres: store.postgres, lake, delayMs: 0, signal, clock })
  await before.succeed('bookcast sync --lake ./lake --to s3://lake/v1')
  await before.succeed(dump)

  const after = await Shell.open(t, { ...storage, DATABASE_URL: newUrl })
  await cp(join(before.directory, 'bookcast.dump'), join(after.directory, 'bookcast.dump'))
  const said = await after.succeed(restore)
  assert.match(said, /^station NYC +2026-08-30T11:51:00Z/m)
  const restored = await openStore(t, newUrl)
  const [lost, found] = [await contents(store), await contents(restored)]
  for (const table of [
    'series',
    'markets',
    'candles',
    'observations',
    'climate_records',
    'ingest_cursors',
    'lake_manifest',
  ])
    assert.ok((found[table] ?? []).length > 0, `${table} has rows`)
  assert.deepEqual(found, lost)
  const files = await readTree(lake)
  assert.ok(Object.keys(files).length > 0)
  assert.deepEqual(await readTree(join(after.directory, 'lake')), files)
  // The collector continues: the tables match, and fetched windows are known.
  assert.deepEqual(await restored.migrate(), [])
  const again = await pollSource(worldSource(t, world, 'iem'), worldContext(restored.postgres))
  assert.deepEqual([again.errorCount, again.rowCount], [0, 0])
})

/** Acts like systemd: stops the unit's process, if there is one, and starts it with the unit and its environment file. */
const SYSTEMCTL = `
[ "$1" = restart ]
unit=$STATE/$2
if [ -f "$unit.pid" ]; then
  kill -TERM "$(cat "$unit.pid")"
  while kill -0 "$(cat "$unit.pid")" 2>/dev/null; do sleep 0.1; done
fi
set -a
. "$unit.env"
set +a
nohup $(cat "$unit.exec") >>"$unit.log" 2>&1 </dev/null &
echo $! >"$unit.pid"`

/** A unit's command with the paths and ports of a test. */
async function commandOf(unit: string, swaps: Readonly<Record<string, string>>): Promise<string> {
  const text = await readFile(join(ROOT, `operations/systemd/${unit}.service`), 'utf8')
  return swapped(/^ExecStart=(.+)$/m.exec(text)?.[1] ?? '', swaps)
}

function swapped(text: string, swaps: Readonly<Record<string, string>>): string {
  return Object.entries(swaps).reduce((result, [from, to]) => result.replaceAll(from, to), text)
}

test('an older store is upgraded, servers are restarted, and the dump allows a rollback', async (t) => {
  const [commands = ''] = await commandsUnder('Upgrade')
  const server = await startPostgres(t)
  if (server === undefined) return
  const [url, backUrl] = await makeDatabases(server, ['upgraded', 'back'])
  const store = await openStore(t, url)
  const migrations = await readMigrations()
  const older = migrations.slice(0, 4)
  await migrate(store.postgres, older)
  const world = await startWorld(t)
  await pollSource(worldSource(t, world, 'aviation-weather'), worldContext(store.postgres))
  const applied = async (from: RelationalStore): Promise<readonly string[]> =>
    ((await contents(from))['schema_migrations'] ?? []).map(
      (row) => (JSON.parse(row) as { name: string }).name,
    )
  const reports = (await contents(store))['observations']

  const state = await Shell.open(t, {})
  const port = String(await freePort())
  const swaps = {
    '/usr/bin/node': process.execPath,
    '/opt/bookcast/': ROOT,
    '/var/lib/bookcast': state.directory,
    '127.0.0.1:9100': '127.0.0.1:0',
    '8080': port,
  }
  const storage = await objectStorage(t)
  const settings = Object.entries({ ...storage, DATABASE_URL: url }).map(
    ([name, value]) => `${name}='${value}'`,
  )
  const own = {
    ingest: 'BOOKCAST_INGEST_SOURCES=none BOOKCAST_SYNC_TO=s3://lake/v1',
    serve: 'BOOKCAST_SYNC_FROM=s3://lake/v1',
  }
  for (const [name, more] of Object.entries(own)) {
    const unit = join(state.directory, `bookcast-${name}`)
    await writeFile(`${unit}.exec`, await commandOf(`bookcast-${name}`, swaps))
    await writeFile(`${unit}.env`, [...settings, ...more.split(' ')].join('\n'))
  }
  const shell = await Shell.open(t, { DATABASE_URL: url, STATE: state.directory }, { systemctl: SYSTEMCTL })
  // Must run before the directory with the units' process ids is removed.
  const stopUnits = (): Promise<unknown> => shell.run('cat "$STATE"/*.pid | xargs kill -TERM')
  try {
    await upgrade()
  } finally {
    await stopUnits()
  }

  async function upgrade(): Promise<void> {
    for (const round of ['first', 'second']) {
      await shell.succeed(swapped(commands, { '8080': port }))
      assert.deepEqual(
        await applied(store),
        migrations.map(({ name }) => name),
        `after the ${round} restart`,
      )
      const served = await fetch(
        `http://127.0.0.1:${port}/api/v1/observations?from=2026-08-30&to=2026-08-31&format=ndjson`,
      )
      assert.equal(served.status, 200)
      assert.equal((await served.text()).trimEnd().split('\n').length, 2)
      if (round === 'first')
        await cp(join(shell.directory, 'before-upgrade.dump'), join(shell.directory, 'first.dump'))
    }
    assert.deepEqual((await contents(store))['observations'], reports)
    const logs = await shell.succeed('cat "$STATE"/*.log')
    assert.doesNotMatch(logs, /"level":50/)
  }

  // An older version with the tables of a newer one.
  await store.postgres.run({
    text: `INSERT INTO schema_migrations (name, checksum) VALUES ('9999_future.sql', '')`,
    parameters: [],
  })
  const refused = await shell.run('bookcast ingest --once --source none')
  assert.equal(refused.code, 1)
  assert.match(refused.output, /9999_future\.sql, which this version does not know\. Use a newer one/)
  const back = await Shell.open(t, { ...storage, DATABASE_URL: backUrl })
  await cp(join(shell.directory, 'first.dump'), join(back.directory, 'bookcast.dump'))
  const [, restore = ''] = await commandsUnder('Back up and restore')
  await back.succeed(restore.split('\n')[0] ?? '')
  assert.deepEqual(
    await applied(await openStore(t, backUrl)),
    older.map(({ name }) => name),
  )
})

test('a prune lists what it then removes from the lake, and removes only files with a copy elsewhere', async (t) => {
  const [commands = ''] = await commandsUnder('Retention')
  const [dry = '', real = ''] = commands.split('\n')
  const shell = await Shell.open(t, await objectStorage(t))
  const lake = join(shell.directory, 'lake')
  for (const day of ['2025-12-30', '2025-12-31', '2026-06-24']) {
    const atMs = Date.parse(`${day}T12:00:00Z`)
    const frames = [snapshot(1, { yes_dollars_fp: [['0.4000', '10.00']] }), delta(2, { ts_ms: atMs + 1000 })]
    const lines = frames.map((data, step) => JSON.stringify({ recv_ts: `${atMs + step * 1000}000000`, data }))
    await runImport(lake, 'kalshi', { lines })
  }
  await shell.succeed('bookcast sync --lake ./lake --to s3://lake/v1')
  const all = await readTree(lake)
  const old = Object.keys(all).filter((key) => key.includes('date=2025-'))
  assert.deepEqual([old.length, Object.keys(all).length], [2, 3])

  const shown = await shell.succeed(dry)
  for (const key of old) assert.ok(shown.includes(`would remove ${key}`), shown)
  assert.match(shown, /^2 files .* to remove with --apply, 0 stay$/m)
  assert.deepEqual(await readTree(lake), all)
  const removed = await shell.succeed(real)
  for (const key of old) assert.ok(removed.includes(`removed ${key}`), removed)
  const left = Object.fromEntries(Object.entries(all).filter(([key]) => !old.includes(key)))
  assert.deepEqual(await readTree(lake), left)
  // Object storage still has everything.
  await shell.succeed('bookcast sync --lake ./other --from s3://lake/v1')
  assert.deepEqual(await readTree(join(shell.directory, 'other')), all)
})

test('an export is the same whether made by one process, by a worker or part by part', async (t) => {
  const [alone = '', queue = '', parts = ''] = await commandsUnder('Export in bulk')
  const databaseUrl = await startPostgres(t)
  if (databaseUrl === undefined) return
  const storage = await objectStorage(t)
  const shell = await Shell.open(t, { ...storage, DATABASE_URL: databaseUrl })
  await cp(SAMPLE_LAKE, join(shell.directory, 'lake'), { recursive: true })
  await shell.succeed('bookcast sync --lake ./lake --to s3://lake/v1')
  const [plan = ''] = alone.split('\n')
  /** The checksums of all files, from a plan with another target than the page's. */
  const sums = async (name: string, commands: () => Promise<unknown>): Promise<string> => {
    if (name !== 'july') await shell.succeed(plan.replace('july', name))
    await commands()
    await shell.succeed(`bookcast export verify s3://lake/exports/${name}`)
    const url = `${storage['BOOKCAST_S3_ENDPOINT']}/lake/exports/${name}/SHA256SUMS`
    return await (await fetch(url)).text()
  }
  const expected = await sums('july', () => shell.succeed(alone))
  assert.match(expected, /^[\da-f]{64} .*\.parquet$/m)
  assert.equal(await sums('parts', () => shell.succeed(parts)), expected)
  const [work = '', submit = ''] = queue.split('\n')
  const throughQueue = async (): Promise<void> => {
    const worker = shell.start(work)
    const id = (await shell.succeed(submit)).trim()
    const status = () => shell.succeed(`bookcast export status ${id}`)
    await soon(async () => (await status()).includes(': completed'), worker.output)
    const { code, output } = await worker.stop()
    assert.equal(code, 0, output)
  }
  assert.equal(await sums('queue', throughQueue), expected)
})
