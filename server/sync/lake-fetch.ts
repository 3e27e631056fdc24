// Brings single files of records from object storage to a lake that rows are about to be added to: one that begins anew, or
// one from which another collector has gone on meanwhile.

import { readLakeFileFacts } from '../lake/lake-file-facts.ts'
import { DirectoryStore } from './directory-store.ts'
import { SyncRun } from './lake-sync.ts'
import { type ListedObject, type ObjectStore, readTail } from './object-store.ts'
import { SyncJournal } from './sync-journal.ts'

export interface WantedFile {
  readonly key: string
  /** The file's own count of its versions: an earlier one is not wanted. */
  readonly revision: bigint
}

/**
 * Brings a file to a lake that has none of its name, or one of an earlier revision; nothing when the remote place has none
 * that is wanted. Rejects when it cannot be fetched.
 */
export async function fetchLakeFile(
  lake: string,
  remote: ObjectStore,
  { key, revision }: WantedFile,
  signal?: AbortSignal,
): Promise<void> {
  const object = await remote.head(key, signal)
  if (object === undefined) return
  const local = new DirectoryStore(lake)
  const present = await local.head(key, signal)
  if (present !== undefined) {
    const facts = await readLakeFileFacts(object.sizeBytes, readTail(remote, object, signal))
    if (facts === undefined || facts.revision < revision) return
  }
  const journal = await SyncJournal.open(lake, `pull ${remote.name}`)
  try {
    const options = {
      lake,
      remote,
      direction: 'pull',
      replace: true,
      ...(signal === undefined ? {} : { signal }),
    } as const
    const found = new Map<string, ListedObject>(present === undefined ? [] : [[key, present]])
    const { failures } = await new SyncRun(remote, local, journal, found, options).transferAll([object])
    for (const { reason } of failures) throw new Error(`${key} cannot be fetched: ${reason}`)
  } finally {
    await journal.close()
  }
}
