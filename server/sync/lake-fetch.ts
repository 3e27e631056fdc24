// Fetches single files of records from object storage before rows are added to them in the lake: the lake may be empty, or another
// collector may have added to the file meanwhile.

import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { DirectoryStore } from './directory-store.ts'
import type { ObjectStore } from './object-store.ts'
import { factsOf } from './replacement.ts'
import { Transfers } from './transfers.ts'

export interface WantedFile {
  readonly key: string
  /** The minimum revision, a number that the file itself states. Ignored if the lake lacks the file. */
  readonly revision: bigint
}

/**
 * Fetches a file if the lake lacks it, or if the remote file has at least the wanted revision. Does nothing if the remote place
 * lacks the file. Rejects if the fetch fails.
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
    const facts = await factsOf(remote, object, signal)
    if (facts === undefined || facts.revision < revision) return
  }
  const options = { lake, remote, signal, clock: SYSTEM_CLOCK, direction: 'pull', replace: true } as const
  const { failures } = await Transfers.run(options, (transfers) =>
    transfers.transfer(key, { isPresent: present !== undefined }),
  )
  for (const { reason } of failures) throw new Error(`${key} cannot be fetched: ${reason}`)
}
