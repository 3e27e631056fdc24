// The relational store, for the commands that need nothing else of the server.

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

/** Statements of a process that has other things to do may wait so long. */
const WAIT_MS = 15_000

/** The store that is there: a command that adds nothing must not make an empty one. */
export async function openExistingStore(options: RelationalStoreOptions): Promise<RelationalStore> {
  if (!(await isStoreThere(options))) throw new Error(noStoreIn(options))
  return await openMigratedStore(options)
}

/** The store with every migration applied; closed again when that fails. */
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

/** The store, or a connection to the process that has it. */
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

/** The owner's path may be relative to where the owner was started; its sockets lie in the directory where they fit. */
function reachablePath(socketPath: string, dataDirectory: string): string | undefined {
  const paths = [join(dataDirectory, 'sockets', 'clients'), ...(isAbsolute(socketPath) ? [socketPath] : [])]
  return paths.find((path) => existsSync(path))
}
