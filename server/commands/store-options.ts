// The options that say where the relational store is, for the commands that need nothing else of it.

import {
  openRelationalStore,
  type RelationalStore,
  type RelationalStoreOptions,
} from '../storage/relational-store.ts'
import { isStoreThere, noStoreIn } from './directories.ts'
import { UsageError } from '../options/usage-error.ts'
import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'

export const STORE_OPTIONS: readonly OptionDeclaration[] = [
  {
    name: 'database-url',
    placeholder: '<url>',
    description: 'a PostgreSQL server; none: an embedded one in the data directory',
    env: 'DATABASE_URL',
    isSecret: true,
  },
  {
    name: 'data-dir',
    placeholder: '<dir>',
    description: 'where the embedded PostgreSQL keeps its files',
    env: 'BOOKCAST_DATA_DIR',
    default: 'bookcast-data',
  },
]

/** @throws {UsageError} that names the wrong option but never shows the address, which may hold a password */
export function readStoreOptions(options: ParsedOptions): RelationalStoreOptions {
  const url = options.get('database-url')
  if (url !== undefined && !/^postgres(?:ql)?:\/\/./.test(url.text)) {
    throw new UsageError(`${url.origin} must be a URL that begins with postgres://`)
  }
  return { databaseUrl: url?.text ?? null, dataDirectory: options.get('data-dir')?.text ?? '' }
}

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
