// The options that select the relational store, for every command that uses one.

import { UsageError } from '../options/usage-error.ts'
import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'

/** Selects the relational store. */
export interface StorePlace {
  /** A PostgreSQL server, or null for the embedded store. May contain a password. */
  readonly databaseUrl: string | null
  /** The directory of the embedded store's files; not used with a server. */
  readonly dataDirectory: string
}

export const STORE_OPTIONS = [
  {
    name: 'database-url',
    placeholder: 'postgres://…',
    description: 'a PostgreSQL server, 15 or later. Default: an embedded one in the data directory',
    env: 'DATABASE_URL',
    isSecret: true,
  },
  {
    name: 'data-dir',
    placeholder: '<dir>',
    description: 'directory of the embedded PostgreSQL',
    default: 'bookcast-data',
  },
] as const satisfies readonly OptionDeclaration[]

/** @throws {UsageError} that names the wrong option but not the address, which may contain a password */
export function readStoreOptions(options: ParsedOptions): StorePlace {
  return { databaseUrl: readDatabaseUrl(options), dataDirectory: options.demand('data-dir').text }
}

/** Null if there is none. @throws {UsageError} as readStoreOptions does */
export function readDatabaseUrl(options: ParsedOptions): string | null {
  const url = options.get('database-url')
  if (url !== undefined && !/^postgres(?:ql)?:\/\/./.test(url.text)) {
    throw new UsageError(`${url.origin} must be a URL that begins with postgres://`)
  }
  return url?.text ?? null
}
