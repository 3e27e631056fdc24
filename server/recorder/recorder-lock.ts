// One recorder per exchange and work directory: two would cut and rename each other's files. The lock file beside the log names its
// owner; the lock of a dead process is taken over. The owner rewrites the file regularly (lock-beat.ts), so that recorders on other
// machines or in other containers that share the directory detect it.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DataDirectoryLock, DataDirectoryLocked } from '../storage/data-directory-lock.ts'

/**
 * Creates the directory and takes its lock; rejects with an error for the user if another recorder holds it.
 * @param onLost another recorder has taken the lock over: this one must stop writing
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
      `${directory} is in use by another recorder, process ${error.pid} on ${error.host}. Stop it, or record into` +
        ' another lake.',
      { cause: error },
    )
  }
}
