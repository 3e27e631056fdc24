// Temporary names in the lake, and what a killed process left behind under them. A temporary name starts with a dot and
// ends in `.tmp`, so no reader takes it for a lake file. Whether its process still lives cannot be told across containers
// and machines that share a lake: only its age decides.

import { randomBytes } from 'node:crypto'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readdir, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { STALE_TEMP_AGE_MS } from '../../shared/limits.ts'

/** Left-over temporary entries removed from one directory in one run. */
const STALE_TEMPS_REMOVED_MAX = 1000
const TEMPORARY_NAME = /^\..*\.[0-9a-f]{12}\.tmp$/

/** A fresh temporary path in the directory of `path`: a rename from one to the other never crosses file systems. */
export function temporaryPath(path: string): string {
  const unique = randomBytes(6).toString('hex')
  return join(dirname(path), `.${basename(path)}.${unique}.tmp`)
}

/**
 * A temporary path for a partition's file (`…/series=A/date=2026-07-01/lob.parquet`): beside the partition's directory, which so
 * exists only with its file.
 * @param unique 12 hexadecimal digits
 */
export function partitionDraftPath(path: string, unique = randomBytes(6).toString('hex')): string {
  const partition = dirname(path)
  return join(dirname(partition), `.${basename(partition)}.${basename(path)}.${unique}.tmp`)
}

/** Gives a finished partition's file its name, in a directory that is made for it. */
export function publishPartition(draft: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  renameSync(draft, path)
}

/** Writes what `path` is to hold beside it, for a rename, and returns where that lies. */
export function stageFile(path: string, content: string | Uint8Array): string {
  mkdirSync(dirname(path), { recursive: true })
  const temporary = temporaryPath(path)
  try {
    writeFileSync(temporary, content, { flush: true })
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  }
  return temporary
}

/** Replaces a file as one step, or leaves it as it is. */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const staged = stageFile(path, content)
  try {
    renameSync(staged, path)
  } finally {
    rmSync(staged, { force: true })
  }
}

/** Removes temporary entries that nobody has touched for a day. Best effort: what resists is left for the next run. */
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
