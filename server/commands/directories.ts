// Whether what an option names is there: a directory that is missing has no figures, and zeros would be taken for them.

import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { OptionText } from '../options/options.ts'
import type { StorePlace } from '../storage/store-options.ts'

export async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}

/** Rejects with a sentence that names the option. */
export async function mustBeDirectory({ origin, text }: OptionText): Promise<void> {
  if (!(await isDirectory(text))) throw new Error(`${origin}: there is no directory ${text}`)
}

/** Whether there is a store, or a server that may have one: who only looks must not make an empty one. */
export async function isStoreThere({ databaseUrl, dataDirectory }: StorePlace): Promise<boolean> {
  return databaseUrl !== null || (await isDirectory(join(dataDirectory, 'pglite')))
}

/** Error message, for people. */
export function noStoreIn({ dataDirectory }: StorePlace): string {
  return `No store found in ${dataDirectory}. Set DATABASE_URL or pass --data-dir.`
}
