// Removes directories that stayed empty, or whose file was removed.

import { rm, rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Removes `last` and its parents up to `first`, as long as they are empty. So an interrupted first import leaves no
 * directory of a series without files.
 */
export async function removeWhileEmpty(last: string, first: string): Promise<void> {
  try {
    for (let path = last; ; path = dirname(path)) {
      await rmdir(path)
      if (path === first) return
    }
  } catch {
    // Not empty: this process or another one has published a file in it.
  }
}

/** Removes a partition's file and its directory, because readers take every such directory for a partition. */
export async function removePartition(path: string): Promise<void> {
  await rm(path, { force: true })
  await removeWhileEmpty(dirname(path), dirname(path))
}
