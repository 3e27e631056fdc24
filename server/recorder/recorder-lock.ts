// One recorder per exchange and work directory: two would cut and rename each other's files. The lock lies beside the log
// and names its owner; that of a process which died is taken over. Nothing of a recorder listens in its directory, so its
// lock beats: recorders on other machines or in other containers that share the directory notice each other too.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DataDirectoryLock, DataDirectoryLocked } from '../storage/data-directory-lock.ts'

/**
 * Creates the directory and takes its lock; rejects with a sentence for people when another recorder has it.
 * @param onLost another recorder has taken it all the same: this one must not write any more
 */
export async function lockRecorder(
  directory: string,
  onLost: (error: Error) => void,
): Promise<DataDirectoryLock> {
  await mkdir(directory, { recursive: true })
  try {
    return await DataDirectoryLock.acquire(directory, join(directory, 'none.sock'), onLost)
  } catch (error) {
    if (!(error instanceof DataDirectoryLocked)) throw error
    throw new Error(
      `${directory} belongs to another recorder, process ${error.pid} on ${error.host}: stop it, or record into` +
        ' another lake',
      { cause: error },
    )
  }
}
