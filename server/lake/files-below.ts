// Lists every file below a directory. Only directories are read, up to a limit of entries.

import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { noneThere } from '../../shared/errno.ts'

const ENTRIES_MAX = 5_000_000
const DEPTH_MAX = 6

/** The paths of the files with this ending, without hidden files and hidden directories. Rejects if there is no `root`. */
export async function* filesBelow(
  root: string,
  ending: string,
  signal?: AbortSignal,
): AsyncGenerator<string, void, void> {
  const pending = [{ path: root, depth: 0 }]
  let entries = 0
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    // Opened, read and closed piece by piece, a directory costs three times as much.
    const listing = readdir(next.path, { withFileTypes: true })
    // A directory below may be gone by now.
    for (const entry of (await (next.depth === 0 ? listing : listing.catch(noneThere))) ?? []) {
      signal?.throwIfAborted()
      if (++entries > ENTRIES_MAX) throw new Error(`${root} has more than ${ENTRIES_MAX} entries`)
      if (entry.name.startsWith('.')) continue
      const path = join(next.path, entry.name)
      if (entry.isDirectory() && next.depth < DEPTH_MAX) pending.push({ path, depth: next.depth + 1 })
      else if (entry.isFile() && entry.name.endsWith(ending)) yield path
    }
  }
}
