// The options that say where the relational store is, for every command that has one.

import { UsageError } from '../options/usage-error.ts'
import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'

/** Where the relational store is. */
export interface StorePlace {
  /** A PostgreSQL server, or null for the embedded store. May hold a password. */
  readonly databaseUrl: string | null
  /** Where the embedded store keeps its files; unused with a server. */
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

/** @throws {UsageError} that names the wrong option but never shows the address, which may hold a password */
export function readStoreOptions(options: ParsedOptions): StorePlace {
  return { databaseUrl: readDatabaseUrl(options), dataDirectory: options.demand('data-dir').text }
}

/** Null without one. @throws {UsageError} as readStoreOptions does */
export function readDatabaseUrl(options: ParsedOptions): string | null {
  const url = options.get('database-url')
  if (url !== undefined && !/^postgres(?:ql)?:\/\/./.test(url.text)) {
    throw new UsageError(`${url.origin} must be a URL that begins with postgres://`)
  }
  return url?.text ?? null
}
