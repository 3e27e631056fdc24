// Which files of a lake are not known to be in object storage. It asks only the lake and the journal of its pushes, so it
// answers while object storage is away.

import { DirectoryStore } from './directory-store.ts'
import { listAll } from './object-store.ts'
import { isSampleObject } from './replacement.ts'
import { SyncJournal } from './sync-journal.ts'

/**
 * Keys in order, without samples, which are never pushed.
 * @param remoteName the name of the object store, as pushes have it
 */
export async function unpushedFiles(lake: string, remoteName: string): Promise<readonly string[]> {
  const journal = await SyncJournal.read(lake, `push ${remoteName}`)
  const local = new DirectoryStore(lake)
  const keys: string[] = []
  for (const { key, version } of (await listAll(local, undefined)).values()) {
    if (journal.get(key)?.sourceVersion === version) continue
    const file = await local.head(key, undefined)
    if (file !== undefined && !(await isSampleObject(local, file, undefined))) keys.push(key)
  }
  return keys.toSorted()
}
