// Checks that the directory or store of an option exists. Otherwise a command would report zeros for a missing directory.

import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { asLakeWriteError } from '../lake/lake-write-error.ts'
import { refuseOldLayout } from '../lake/old-layout.ts'
import type { OptionText } from '../options/options.ts'
import type { StorePlace } from '../storage/store-options.ts'

export async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true
}

/** Rejects with a sentence that names the option. */
export async function mustBeDirectory({ origin, text }: OptionText): Promise<void> {
  if (!(await isDirectory(text))) throw new Error(`${origin}: there is no directory ${text}`)
}

/** Rejects unless the option names a lake of today's layout. */
export async function mustBeLake(option: OptionText): Promise<void> {
  await mustBeDirectory(option)
  await refuseOldLayout(option.text)
}

export async function makeLake(lake: string): Promise<void> {
  await mkdir(lake, { recursive: true }).catch((error: unknown) => {
    throw asLakeWriteError(error, lake)
  })
}

/** Whether a store exists, or a server that may have one. Commands that only read must not create an empty store. */
export async function isStoreThere({ databaseUrl, dataDirectory }: StorePlace): Promise<boolean> {
  return databaseUrl !== null || (await isDirectory(join(dataDirectory, 'pglite')))
}

export function noStoreIn({ dataDirectory }: StorePlace): string {
  return `No store found in ${dataDirectory}. Set DATABASE_URL or pass --data-dir.`
}
