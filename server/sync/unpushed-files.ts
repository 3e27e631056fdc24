// Which files of a lake are not known to be in object storage. It asks only the lake and the journal of its pushes, so it
// answers while object storage is away.

import { FOLD_STATE_NAME } from '../fold/fold-state.ts'
import { DirectoryStore } from './directory-store.ts'
import { isRawKey, listAll } from './object-store.ts'
import { isSampleObject } from './replacement.ts'
import { SyncJournal } from './sync-journal.ts'

/**
 * Keys in order, without samples, which are never pushed.
 * @param remoteName the name of the object store, as pushes have it
 * @param raw whether raw segments are pushed
 */
export async function unpushedFiles(
  lake: string,
  remoteName: string,
  raw = true,
): Promise<readonly string[]> {
  const journal = await SyncJournal.read(lake, `push ${remoteName}`)
  const local = new DirectoryStore(lake)
  const keys: string[] = []
  for (const { key, version } of (await listAll(local, undefined, { raw })).values()) {
    if (journal.get(key)?.sourceVersion === version) continue
    // A fold state is pushed with its manifest.
    if (isRawKey(key)) {
      if (!key.endsWith(FOLD_STATE_NAME)) keys.push(key)
      continue
    }
    const file = await local.head(key, undefined)
    if (file !== undefined && !(await isSampleObject(local, file, undefined))) keys.push(key)
  }
  return keys.toSorted()
}
