// Directories that were made and stayed empty, or whose file is removed.

import { rm, rmdir } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Removes `last` and those above it up to `first`, as long as they are empty: an interrupted first import shall not leave
 * a series that the lake then seems to know.
 */
export async function removeWhileEmpty(last: string, first: string): Promise<void> {
  try {
    for (let path = last; ; path = dirname(path)) {
      await rmdir(path)
      if (path === first) return
    }
  } catch {
    // Not empty: this process or another one has published into it.
  }
}

/** Removes a partition's file and its directory, so that no lister takes the directory for a partition. */
export async function removePartition(path: string): Promise<void> {
  await rm(path, { force: true })
  await removeWhileEmpty(dirname(path), dirname(path))
}
