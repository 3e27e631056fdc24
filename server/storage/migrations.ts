// Updates the store's schema from plain SQL files. All pending files run in one transaction under an advisory lock, so any number
// of replicas may start at once: one applies the files, the others wait and find them applied. An applied file must never change,
// and a schema newer than this build is refused.

import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rawSql, sql } from '../../shared/sql/statement.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** How long a starting replica waits for another one to migrate. */
const MIGRATION_LOCK_WAIT_MS_MAX = 60_000
const MIGRATION_STATEMENT_MS_MAX = 600_000

export interface Migration {
  /** The file's name, `0001_catalogue.sql`. */
  readonly name: string
  readonly text: string
  /** SHA-256 of the text, lower-case hexadecimal. */
  readonly checksum: string
}

/** The files and the store do not match; the message says which and what to do. */
export class MigrationError extends Error {
  constructor(detail: string) {
    super(detail)
    this.name = 'MigrationError'
  }
}

/** Any number that no other advisory lock uses: `bookcast` in ASCII. */
const LOCK_KEY = '7093010445151335284'
/** From dist/server/storage: tsc copies no SQL, so the files are read from their place in the source tree. */
const DIRECTORY = fileURLToPath(new URL('../../../server/storage/migrations', import.meta.url))
const FILE_NAME = /^\d{4}_[a-z0-9_]+\.sql$/

/** Applies pending migrations and returns their names. */
export async function migrate(postgres: Postgres, migrations: readonly Migration[]): Promise<string[]> {
  return postgres.transaction((transaction) => applyPending(transaction, migrations), {
    statementTimeoutMs: MIGRATION_STATEMENT_MS_MAX,
  })
}

/** The migrations of a directory in order; by default those of this package. */
export async function readMigrations(directory = DIRECTORY): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).toSorted()
  return Promise.all(
    names.map(async (name, index) => {
      const number = String(index + 1).padStart(4, '0')
      if (!FILE_NAME.test(name) || !name.startsWith(number)) {
        throw new MigrationError(`The migration ${name} should be named ${number}_<what_it_does>.sql.`)
      }
      // A checkout may have changed the line ends.
      const text = (await readFile(join(directory, name), 'utf8')).replaceAll('\r\n', '\n')
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

async function applyPending(
  transaction: StoreTransaction,
  migrations: readonly Migration[],
): Promise<string[]> {
  const run = (text: string): Promise<unknown> => transaction.run(rawSql(text))
  await run(`SET LOCAL lock_timeout = ${MIGRATION_LOCK_WAIT_MS_MAX}`)
  await run(`SELECT pg_advisory_xact_lock(${LOCK_KEY})`)
  await run(
    'CREATE TABLE IF NOT EXISTS schema_migrations (name text PRIMARY KEY, checksum text NOT NULL,' +
      ' applied_at timestamptz NOT NULL DEFAULT now())',
  )
  const applied = await transaction.run<{ name: string; checksum: string }>(
    sql`SELECT name, checksum FROM schema_migrations`,
  )
  const pending = pendingOf(migrations, applied)
  for (const { name, text, checksum } of pending) {
    await run(text)
    await transaction.run(sql`INSERT INTO schema_migrations (name, checksum) VALUES (${name}, ${checksum})`)
  }
  return pending.map(({ name }) => name)
}

function pendingOf(
  migrations: readonly Migration[],
  applied: readonly { readonly name: string; readonly checksum: string }[],
): Migration[] {
  const known = new Map(migrations.map((migration) => [migration.name, migration]))
  for (const { name, checksum } of applied) {
    const migration = known.get(name)
    if (migration === undefined) {
      throw new MigrationError(
        `The store has the migration ${name}, which this version does not know. Use a newer one.`,
      )
    }
    if (migration.checksum !== checksum) {
      throw new MigrationError(
        `The migration ${name} was changed after it was applied. Restore it and add a new file.`,
      )
    }
  }
  const done = new Set(applied.map(({ name }) => name))
  const pending = migrations.filter(({ name }) => !done.has(name))
  const [first] = pending
  const last = migrations.findLast(({ name }) => done.has(name))
  if (first !== undefined && last !== undefined && first.name < last.name) {
    throw new MigrationError(
      `The migration ${first.name} was added before ${last.name}, which is applied already.`,
    )
  }
  return pending
}
