// A fresh relational store per test file: a new database on the PostgreSQL server of DATABASE_URL, or else an embedded store.
// Making an embedded store's database takes seconds, so it is made once and copied: with the tables of this version, or empty.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import postgres from 'postgres'
import { loadSampleRecords } from '../../server/sample-data/sample-store.ts'
import { EmbeddedPostgres } from '../../server/storage/embedded-postgres.ts'
import { readMigrations } from '../../server/storage/migrations.ts'
import { openRelationalStore, type RelationalStore } from '../../server/storage/relational-store.ts'
import { SharedByFiles } from './shared-by-files.ts'

/** The PostgreSQL server for the tests, or null for the embedded store. */
export const SERVER_URL: string | null = process.env['DATABASE_URL'] ?? null

const SHARED_STORE = new SharedByFiles<RelationalStore>(async () => {
  const place = await makeEmptyStore()
  const store = await openRelationalStore(place)
  await store.migrate()
  return {
    value: store,
    async end() {
      await store.close()
      await place.remove()
    },
  }
}, removeRows)

/** The store of this test file, migrated and empty before its first test. Call it at top level. */
export function storeOfThisFile(): { readonly store: RelationalStore } {
  const shared = SHARED_STORE.ofThisFile()
  return {
    get store() {
      return shared()
    },
  }
}

/** Restores the state after migrations. */
async function removeRows({ postgres: store }: RelationalStore): Promise<void> {
  await store.transaction(async (transaction) => {
    const run = (text: string) => transaction.run<{ name: string }>({ text, parameters: [] })
    const tables = await run(
      `SELECT quote_ident(tablename::text) AS name FROM pg_tables
        WHERE schemaname = 'public' AND tablename NOT IN ('schema_migrations', 'data_versions')`,
    )
    await run(`TRUNCATE ${tables.map(({ name }) => name).join(', ')} RESTART IDENTITY`)
    await run('UPDATE data_versions SET version = 0, changed_at = NULL')
  })
}

/** The place of a store without rows. It may lack tables: migrate it. */
export interface EmptyStore {
  readonly databaseUrl: string | null
  readonly dataDirectory: string
  readonly remove: () => Promise<void>
}

export async function makeEmptyStore(): Promise<EmptyStore> {
  return SERVER_URL === null ? makeEmbeddedStore() : makeDatabase(SERVER_URL)
}

/** A store with the sample records, in a fresh database or an embedded store. */
export async function makeSampleStore(): Promise<EmptyStore> {
  if (SERVER_URL === null) return makeEmbeddedStore('samples')
  const place = await makeDatabase(SERVER_URL)
  await fillWithSamples(place)
  return place
}

/** A data directory of an embedded store: with the tables of this version, without tables, or with the sample records. */
export async function makeEmbeddedStore(
  contents: 'no tables' | 'tables' | 'samples' = 'tables',
): Promise<EmptyStore> {
  const dataDirectory = await mkdtemp(join(tmpdir(), 'bookcast-test-'))
  const template = await TEMPLATES[contents]()
  // There are a thousand files, for which Node's own copy takes a second.
  await promisify(execFile)('cp', ['-R', join(template, 'pglite'), dataDirectory])
  const remove = (): Promise<void> => rm(dataDirectory, { recursive: true, force: true })
  return { databaseUrl: null, dataDirectory, remove }
}

async function makeDatabase(serverUrl: string): Promise<EmptyStore> {
  const name = `bookcast_test_${randomUUID().replaceAll('-', '')}`
  await administrate(serverUrl, `CREATE DATABASE ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const remove = (): Promise<void> => administrate(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`)
  return { databaseUrl: url.href, dataDirectory: '', remove }
}

async function administrate(serverUrl: string, command: string): Promise<void> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} })
  await sql.unsafe(command)
  await sql.end()
}

/** A data directory with an untouched database, kept between runs for each version of PGlite. */
async function emptyTemplate(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite')
  const { version } = JSON.parse(await readFile(join(dirname(entry), '..', 'package.json'), 'utf8')) as {
    version: string
  }
  return keptTemplate(version, async (directory) => {
    const embedded = await EmbeddedPostgres.start({ directory })
    await embedded.close()
    // Zeroing the usual 128 MB takes as long as the rest of each start.
    await appendFile(join(directory, 'pglite', 'postgresql.conf'), 'shared_buffers = 8MB\n')
  })
}

/** The same with the tables of the current migrations. */
async function migratedTemplate(): Promise<string> {
  const checksums = (await readMigrations()).map(({ checksum }) => checksum)
  return grownTemplate(await emptyTemplate(), checksums.join(' '), async (place) => {
    const store = await openRelationalStore(place)
    await store.migrate()
    await store.close()
  })
}

/** The same with the records of the current sample, which depend on the code that makes and merges them. */
async function sampleTemplate(): Promise<string> {
  const digest = createHash('sha256')
  for (const folder of ['sample-data', 'storage', 'ingest', 'ingest/climate-reports']) {
    const path = fileURLToPath(new URL(`../../server/${folder}/`, import.meta.url))
    for (const name of (await readdir(path)).toSorted())
      if (name.endsWith('.js')) digest.update(await readFile(join(path, name)))
  }
  return grownTemplate(await migratedTemplate(), digest.digest('hex'), fillWithSamples)
}

async function fillWithSamples(place: Pick<EmptyStore, 'databaseUrl' | 'dataDirectory'>): Promise<void> {
  const store = await openRelationalStore(place)
  await store.migrate()
  assert.ok(await loadSampleRecords(store.postgres))
  await store.close()
}

/** A copy of a template with additions, which `identity` identifies. */
async function grownTemplate(
  template: string,
  identity: string,
  grow: (place: { databaseUrl: null; dataDirectory: string }) => Promise<void>,
): Promise<string> {
  const digest = createHash('sha256').update(`${template} ${identity}`).digest('hex').slice(0, 16)
  return keptTemplate(digest, async (directory) => {
    await promisify(execFile)('cp', ['-R', join(template, 'pglite'), directory])
    await grow({ databaseUrl: null, dataDirectory: directory })
  })
}

async function keptTemplate(name: string, make: (directory: string) => Promise<void>): Promise<string> {
  const parent = process.env['BOOKCAST_TEST_TEMPLATES'] ?? tmpdir()
  const path = join(parent, `bookcast-test-store-${name}-${process.getuid?.() ?? 0}`)
  if (await exists(path)) return path
  const isMaker = await beginsMaking(path)
  if (!isMaker && (await isMadeSoon(path))) return path
  const draft = await mkdtemp(`${path}-`)
  try {
    await make(draft)
    await makeSparse(draft)
    await rename(draft, path).catch(async (error: unknown) => {
      // Another process was faster, or assumed that this one would not finish.
      if (!(await exists(path))) throw error
    })
  } finally {
    await rm(draft, { recursive: true, force: true })
    await rm(makingOf(path), { recursive: true, force: true })
  }
  return path
}

/** Makes a template's files sparse where they have zeros, mostly its log: a copy then takes a third of the time. */
async function makeSparse(directory: string): Promise<void> {
  const [dense, sparse] = ['pglite', 'sparse'].map((name) => join(directory, name)) as [string, string]
  try {
    await promisify(execFile)('cp', ['-R', '--sparse=always', dense, sparse])
  } catch {
    // Only GNU's cp supports this.
    await rm(sparse, { recursive: true, force: true })
    return
  }
  await rm(dense, { recursive: true })
  await rename(sparse, dense)
}

/** How long a process waits for a template that another one makes. */
const TEMPLATE_MS_MAX = 60_000

const makingOf = (path: string): string => `${path}.making`

async function beginsMaking(path: string): Promise<boolean> {
  try {
    await mkdir(makingOf(path))
    return true
  } catch {
    return false
  }
}

/** Waits for the process that makes a template; false if it does not finish. */
async function isMadeSoon(path: string): Promise<boolean> {
  const deadlineMs = performance.now() + TEMPLATE_MS_MAX
  while (performance.now() < deadlineMs && (await exists(makingOf(path)))) await delay(50)
  return exists(path)
}

const TEMPLATES = { 'no tables': emptyTemplate, tables: migratedTemplate, samples: sampleTemplate } as const

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path)
    return true
  } catch {
    return false
  }
}
