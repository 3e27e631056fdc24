// Lists the files of a lake that are not known to be in object storage. It reads only the lake and the journal of its pushes, so
// it works while object storage is unavailable.

import { FOLD_STATE_NAME } from '../fold/fold-state.ts'
import { DirectoryStore } from './directory-store.ts'
import { isRawKey, listAll } from './object-store.ts'
import { isSampleObject } from './replacement.ts'
import { readJournal } from './sync-journal.ts'

/**
 * The sorted keys of the files, without samples, which are never pushed.
 * @param remoteName the name of the object store in the journal of pushes
 * @param raw whether raw segments are pushed
 */
export async function unpushedFiles(
  lake: string,
  remoteName: string,
  raw = true,
): Promise<readonly string[]> {
  const journal = await readJournal(lake, `push ${remoteName}`)
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
