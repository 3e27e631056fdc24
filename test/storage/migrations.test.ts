import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, beforeEach, test } from 'node:test'
import { type Migration, MigrationError, migrate, readMigrations } from '../../server/storage/migrations.ts'
import { Postgres } from '../../server/storage/postgres.ts'
import { STORED_OBSERVATION_COLUMNS } from '../../shared/sql/observation-queries.ts'
import { storeOfThisFile } from '../support/postgres.ts'
import { temporaryDirectory } from '../support/temporary-lake.ts'

const file = storeOfThisFile()
let migrations: readonly Migration[]
let names: readonly string[]

before(async () => {
  migrations = await readMigrations()
  names = migrations.map(({ name }) => name)
})

beforeEach(async () => {
  await command('DROP SCHEMA public CASCADE')
  await command('CREATE SCHEMA public')
})

test('applies all files to an empty store, and nothing the second time', async () => {
  const { store } = file
  assert.deepEqual(await store.migrate(), names)
  assert.deepEqual(await store.migrate(), [])
  assert.deepEqual(await tables(), [
    'candle_lives',
    'candles',
    'climate_records',
    'data_versions',
    'ingest_cursors',
    'lake_manifest',
    'lake_syncs',
    'market_names',
    'markets',
    'observations',
    'schema_migrations',
    'series',
  ])
})

test('replicas that start concurrently apply each file once', async (t) => {
  const { store } = file
  const replica = new Postgres({
    address: store.postgres.address,
    poolSize: 2,
    statementTimeoutMs: 60_000,
    connectTimeoutMs: 5_000,
  })
  t.after(() => replica.close(0))
  const applied = await Promise.all([
    store.migrate(),
    migrate(replica, migrations),
    migrate(replica, migrations),
  ])
  assert.deepEqual(applied.flat(), names)
  const rows = await store.postgres.run<{ name: string }>({
    text: 'SELECT name FROM schema_migrations ORDER BY name COLLATE "C"',
    parameters: [],
  })
  assert.deepEqual(
    rows.map(({ name }) => name),
    names,
  )
})

test('a file that changed after it was applied is refused and nothing else is applied', async () => {
  const { store } = file
  await store.migrate()
  const changed: Migration[] = migrations.map((migration, index) =>
    index === 1 ? { ...migration, checksum: 'f'.repeat(64) } : migration,
  )
  const added = { name: '0099_more.sql', text: 'CREATE TABLE more (id int)', checksum: '0'.repeat(64) }
  await assert.rejects(migrate(store.postgres, [...changed, added]), (error) => {
    assert.ok(error instanceof MigrationError)
    assert.match(error.message, new RegExp(`${names[1]} was changed`))
    return true
  })
  assert.ok(!(await tables()).includes('more'))
})

test('a store that is newer than the files is refused', async () => {
  const { store } = file
  await store.migrate()
  await assert.rejects(migrate(store.postgres, migrations.slice(0, -1)), /does not know/)
})

test('a file that sorts before an applied one is refused', async () => {
  const { store } = file
  await migrate(store.postgres, migrations.slice(1).map(withoutContent))
  await assert.rejects(migrate(store.postgres, migrations.map(withoutContent)), /was added before/)
})

test('a file that fails leaves the store unchanged', async () => {
  const { store } = file
  const broken = {
    name: '0099_broken.sql',
    text: 'CREATE TABLE half (id int); SELECT nonsense',
    checksum: 'b',
  }
  await assert.rejects(migrate(store.postgres, [...migrations, broken]), /nonsense/)
  assert.deepEqual(await tables(), [])
  assert.deepEqual(await store.migrate(), names)
})

test('the declared observation columns are those of the table', async () => {
  const { store } = file
  await store.migrate()
  const rows = await store.postgres.run<{ column_name: string; udt_name: string }>({
    text: `SELECT column_name::text, udt_name::text FROM information_schema.columns
      WHERE table_name = 'observations' AND column_name NOT IN ('filled', 'written_at') ORDER BY ordinal_position`,
    parameters: [],
  })
  assert.deepEqual(
    Object.fromEntries(rows.map(({ column_name, udt_name }) => [column_name, udt_name])),
    STORED_OBSERVATION_COLUMNS,
  )
})

test('reads files in the order of their numbers, with any line endings', async (t) => {
  const directory = await temporaryDirectory(t)
  await writeFile(join(directory, '0002_second.sql'), 'SELECT 2;\n')
  await writeFile(join(directory, '0001_first.sql'), 'SELECT 1;\r\nSELECT 1;\r\n')
  await writeFile(join(directory, 'notes.txt'), 'not a migration')
  const crlf = await readMigrations(directory)
  assert.deepEqual(
    crlf.map(({ name, text }) => ({ name, text })),
    [
      { name: '0001_first.sql', text: 'SELECT 1;\nSELECT 1;\n' },
      { name: '0002_second.sql', text: 'SELECT 2;\n' },
    ],
  )
  await writeFile(join(directory, '0001_first.sql'), 'SELECT 1;\nSELECT 1;\n')
  assert.equal((await readMigrations(directory))[0]?.checksum, crlf[0]?.checksum)
})

test('a gap in the numbers is refused', async (t) => {
  const directory = await temporaryDirectory(t)
  await writeFile(join(directory, '0001_first.sql'), '')
  await writeFile(join(directory, '0003_third.sql'), '')
  await assert.rejects(readMigrations(directory), /0003_third\.sql should be named 0002_/)
})

async function command(text: string): Promise<void> {
  await file.store.postgres.run({ text, parameters: [] })
}

async function tables(): Promise<string[]> {
  const rows = await file.store.postgres.run<{ table_name: string }>({
    text: `SELECT table_name::text COLLATE "C" AS table_name FROM information_schema.tables
      WHERE table_schema = 'public' ORDER BY 1`,
    parameters: [],
  })
  return rows.map(({ table_name }) => table_name)
}

function withoutContent(migration: Migration): Migration {
  return { ...migration, text: 'SELECT 1' }
}
