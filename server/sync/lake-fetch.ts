// Brings single files of records from object storage to a lake that rows are about to be added to: an empty lake, or one whose
// file another collector has continued meanwhile.

import { readLakeFileFacts } from '../lake/lake-file-facts.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { DirectoryStore } from './directory-store.ts'
import { type ObjectStore, readTail } from './object-store.ts'
import { Transfers } from './transfers.ts'

export interface WantedFile {
  readonly key: string
  /** The file's own count of its versions: an earlier one is not wanted. */
  readonly revision: bigint
}

/**
 * Brings a file to a lake that has none of its name, or one of an earlier revision. Does nothing when the remote place has none
 * that is wanted. Rejects when it cannot be fetched.
 */
export async function fetchLakeFile(
  lake: string,
  remote: ObjectStore,
  { key, revision }: WantedFile,
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const object = await remote.head(key, signal)
  if (object === undefined) return
  const present = await new DirectoryStore(lake).stat(key)
  if (present !== undefined) {
    const facts = await readLakeFileFacts(object.sizeBytes, readTail(remote, object, signal))
    if (facts === undefined || facts.revision < revision) return
  }
  const options = { lake, remote, signal, clock: SYSTEM_CLOCK, direction: 'pull', replace: true } as const
  const { failures } = await Transfers.run(options, (transfers) =>
    transfers.transfer(key, { isPresent: present !== undefined }),
  )
  for (const { reason } of failures) throw new Error(`${key} cannot be fetched: ${reason}`)
}
