// Opens the relational store the configuration asks for: the PostgreSQL server of DATABASE_URL, or the embedded one in
// the data directory. Everything after that is the same driver and the same SQL. It reads no environment itself.

import { STORE_CONNECT_TIMEOUT_MS_DEFAULT, STORE_STATEMENT_TIMEOUT_MS_DEFAULT } from '../../shared/limits.ts'
import { maintainTables } from './embedded-maintenance.ts'
import { EmbeddedPostgres, type EmbeddedPostgresOptions } from './embedded-postgres.ts'
import { migrate, readMigrations } from './migrations.ts'
import { Postgres } from './postgres.ts'
import type { StorePlace } from './store-options.ts'

/** Connections of one process to the relational store. `DATABASE_URL`'s server needs replicas × (this + workers). */
const STORE_POOL_SIZE_DEFAULT = 10
/** The embedded store has one session, so more connections only make more clients wait in its queue. */
const STORE_POOL_SIZE_EMBEDDED = 4
/** How often the embedded store looks after its tables, and the dead rows of a table that are worth removing. */
const EMBEDDED_MAINTENANCE_MS = 60_000

export interface RelationalStoreOptions extends StorePlace {
  readonly poolSize?: number
  readonly statementTimeoutMs?: number
  readonly connectTimeoutMs?: number
  readonly onEmbeddedFailure?: EmbeddedPostgresOptions['onFailure']
}

export interface RelationalStore {
  /** Runs statements. Its `address` is what a worker needs to connect for itself. */
  readonly postgres: Postgres
  /** Applies pending migrations and returns their names. Rejects with a StoreError while the server is away. */
  migrate(): Promise<string[]>
  /** Ends the connections, giving statements that run `graceMs`, and the embedded store with them. */
  close(graceMs?: number): Promise<void>
}

/**
 * The store, not yet migrated. A server that is away does not keep it from opening: statements reject with a StoreError
 * until it is there. The embedded store is started, and rejects with DataDirectoryLocked when its directory is in use.
 */
export async function openRelationalStore(options: RelationalStoreOptions): Promise<RelationalStore> {
  const { dataDirectory: directory, onEmbeddedFailure: onFailure } = options
  const embedded =
    options.databaseUrl === null ? await EmbeddedPostgres.start({ directory, onFailure }) : undefined
  const postgres = new Postgres({
    address: embedded?.address ?? { kind: 'server', url: options.databaseUrl ?? '' },
    poolSize:
      options.poolSize ?? (embedded === undefined ? STORE_POOL_SIZE_DEFAULT : STORE_POOL_SIZE_EMBEDDED),
    statementTimeoutMs: options.statementTimeoutMs ?? STORE_STATEMENT_TIMEOUT_MS_DEFAULT,
    connectTimeoutMs: options.connectTimeoutMs ?? STORE_CONNECT_TIMEOUT_MS_DEFAULT,
  })
  const maintenance = embedded === undefined ? undefined : startMaintenance(postgres)
  return {
    postgres,
    migrate: async () => migrate(postgres, await readMigrations()),
    async close(graceMs = 0) {
      clearInterval(maintenance)
      await postgres.close(graceMs)
      await embedded?.close()
    },
  }
}

/** A round that fails because the store is away is made up for by a later one. */
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
