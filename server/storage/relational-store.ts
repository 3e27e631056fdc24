// Opens the configured relational store: the PostgreSQL server of DATABASE_URL, or the embedded store in the data directory. Both
// use the same driver and SQL. This file does not read the environment.

import { STORE_CONNECT_TIMEOUT_MS_DEFAULT, STORE_STATEMENT_TIMEOUT_MS_DEFAULT } from '../../shared/limits.ts'
import { maintainTables } from './embedded-maintenance.ts'
import { EmbeddedPostgres, type EmbeddedPostgresOptions } from './embedded-postgres.ts'
import { migrate, readMigrations } from './migrations.ts'
import { Postgres } from './postgres.ts'
import type { StorePlace } from './store-options.ts'

/** Connections of one process to the relational store. The server of `DATABASE_URL` needs replicas × (this + workers). */
const STORE_POOL_SIZE_DEFAULT = 10
/** The embedded store has one session: more connections would only lengthen its queue. */
const STORE_POOL_SIZE_EMBEDDED = 4
/** How often the embedded store runs maintenance. */
const EMBEDDED_MAINTENANCE_MS = 60_000

export interface RelationalStoreOptions extends StorePlace {
  readonly onEmbeddedFailure?: EmbeddedPostgresOptions['onFailure']
}

export type RelationalStore = Awaited<ReturnType<typeof openRelationalStore>>

/**
 * The store, not yet migrated. Opens even if the server is unavailable: statements reject with a StoreError until it is there. The
 * embedded store is started; it rejects with DataDirectoryLocked if its directory is in use.
 */
export async function openRelationalStore(options: RelationalStoreOptions) {
  const { dataDirectory: directory, onEmbeddedFailure: onFailure } = options
  const embedded =
    options.databaseUrl === null ? await EmbeddedPostgres.start({ directory, onFailure }) : undefined
  const postgres = new Postgres({
    address: embedded?.address ?? { kind: 'server', url: options.databaseUrl ?? '' },
    poolSize: embedded === undefined ? STORE_POOL_SIZE_DEFAULT : STORE_POOL_SIZE_EMBEDDED,
    statementTimeoutMs: STORE_STATEMENT_TIMEOUT_MS_DEFAULT,
    connectTimeoutMs: STORE_CONNECT_TIMEOUT_MS_DEFAULT,
  })
  const maintenance = embedded === undefined ? undefined : startMaintenance(postgres)
  return {
    /** Runs statements. A worker connects with its `address`. */
    postgres,
    /** Applies pending migrations and returns their names. Rejects with a StoreError while the server is unavailable. */
    migrate: async () => migrate(postgres, await readMigrations()),
    /** Ends the connections, with `graceMs` for running statements, and then the embedded store. */
    async close(graceMs = 0): Promise<void> {
      clearInterval(maintenance)
      await postgres.close(graceMs)
      await embedded?.close()
    },
  }
}

/** If a run fails because the store is unavailable, a later one does its work. */
function startMaintenance(postgres: Postgres): NodeJS.Timeout {
  let isRunning = false
  const maintain = async (): Promise<void> => {
    if (isRunning) return
    isRunning = true
    await maintainTables(postgres).catch(() => {})
    isRunning = false
  }
  return setInterval(() => void maintain(), EMBEDDED_MAINTENANCE_MS).unref()
}
