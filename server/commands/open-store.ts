// Opens the relational store for commands that need no other part of the server.

import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { DataDirectoryLocked } from '../storage/data-directory-lock.ts'
import { Postgres } from '../storage/postgres.ts'
import {
  openRelationalStore,
  type RelationalStore,
  type RelationalStoreOptions,
} from '../storage/relational-store.ts'
import type { StorePlace } from '../storage/store-options.ts'
import { isStoreThere, noStoreIn } from './directories.ts'

/** The timeout of statements that run in another process, which is busy with its own. */
const WAIT_MS = 15_000

/** Opens a store that exists: a command that adds nothing must not create an empty one. */
export async function openExistingStore(options: RelationalStoreOptions): Promise<RelationalStore> {
  if (!(await isStoreThere(options))) throw new Error(noStoreIn(options))
  return await openMigratedStore(options)
}

/** Opens the store and applies all migrations. If a migration fails, closes the store. */
export async function openMigratedStore(options: RelationalStoreOptions): Promise<RelationalStore> {
  const store = await openRelationalStore(options)
  try {
    await store.migrate()
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Opens the store, or connects to the process that has it open. */
export async function openSharedStore(
  options: StorePlace,
): Promise<{ readonly postgres: Postgres; close(): Promise<void> }> {
  try {
    return await openMigratedStore(options)
  } catch (error) {
    if (!(error instanceof DataDirectoryLocked)) throw error
    const socketPath = reachablePath(error.socketPath, options.dataDirectory)
    if (socketPath === undefined) throw error
    const postgres = new Postgres({
      address: { kind: 'embedded', socketPath },
      poolSize: 1,
      statementTimeoutMs: WAIT_MS,
      connectTimeoutMs: WAIT_MS,
    })
    return { postgres, close: () => postgres.close(0) }
  }
}

/** The owner's path may be relative to its working directory. If the path is not too long, the socket is in the data directory. */
function reachablePath(socketPath: string, dataDirectory: string): string | undefined {
  const paths = [join(dataDirectory, 'sockets', 'clients'), ...(isAbsolute(socketPath) ? [socketPath] : [])]
  return paths.find((path) => existsSync(path))
}
