// The relational store, for the commands that need nothing else of the server.

import {
  openRelationalStore,
  type RelationalStore,
  type RelationalStoreOptions,
} from '../storage/relational-store.ts'
import { isStoreThere, noStoreIn } from './directories.ts'

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
