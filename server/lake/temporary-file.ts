// Temporary names in the lake, and the cleanup after killed processes. A temporary name starts with a dot and ends in `.tmp`,
// so no reader takes it for a lake file. Across containers and machines that share a lake, a process cannot tell whether
// another one is alive: only the age of an entry decides.

import { randomBytes } from 'node:crypto'
import { mkdirSync, renameSync } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { STALE_TEMP_AGE_MS } from '../../shared/limits.ts'

/** Left-over temporary entries removed from one directory in one run. */
const STALE_TEMPS_REMOVED_MAX = 1000
const TEMPORARY_NAME = /^\..*\.[0-9a-f]{12}\.tmp$/

/** A new temporary path in the directory of `path`: a rename from one to the other never crosses file systems. */
export function temporaryPath(path: string): string {
  const unique = randomBytes(6).toString('hex')
  return join(dirname(path), `.${basename(path)}.${unique}.tmp`)
}

/**
 * A temporary path for a partition's file (`…/series=A/date=2026-07-01/lob.parquet`). It is beside the partition's directory,
 * so that the directory exists only with its file.
 * @param unique 12 hexadecimal digits
 */
export function partitionDraftPath(path: string, unique = randomBytes(6).toString('hex')): string {
  const partition = dirname(path)
  return join(dirname(partition), `.${basename(partition)}.${basename(path)}.${unique}.tmp`)
}

/** Renames a finished partition's file to its final name, in a directory that is created for it. */
export function publishPartition(draft: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  renameSync(draft, path)
}

/** Writes the new content of `path` to a temporary file beside it, for a rename, and returns that file's path. */
export async function stageFile(path: string, content: string | Uint8Array): Promise<string> {
  await mkdir(dirname(path), { recursive: true })
  const temporary = temporaryPath(path)
  try {
    await writeFile(temporary, content, { flush: true })
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  return temporary
}

/** Replaces a file atomically, or leaves it unchanged. */
export async function replaceFile(path: string, content: string | Uint8Array): Promise<void> {
  const staged = await stageFile(path, content)
  try {
    await rename(staged, path)
  } finally {
    await rm(staged, { force: true })
  }
}

/** Removes temporary entries not modified for a day. Best effort: entries that cannot be removed are left for the next run. */
export async function removeStaleTemporaries(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => [])
  let removed = 0
  for (const name of names) {
    if (!TEMPORARY_NAME.test(name)) continue
    const path = join(directory, name)
    const modifiedMs = await stat(path).then(
      ({ mtimeMs }) => mtimeMs,
      () => Infinity,
    )
    if (modifiedMs > Date.now() - STALE_TEMP_AGE_MS) continue
    if (removed++ === STALE_TEMPS_REMOVED_MAX) return
    await rm(path, { recursive: true, force: true }).catch(() => undefined)
  }
}
