// One recorder per exchange and work directory: two would cut and rename each other's files. The lock lies beside the log
// and names its owner; that of a process which died is taken over. Recorders in different containers do not see each
// other: nothing of a recorder listens in its directory.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DataDirectoryLock, DataDirectoryLocked } from '../../storage/data-directory-lock.ts'

/** Creates the directory and takes its lock; rejects with a sentence for people when another recorder has it. */
export async function lockRecorder(directory: string): Promise<DataDirectoryLock> {
  await mkdir(directory, { recursive: true })
  try {
    return await DataDirectoryLock.acquire(directory, join(directory, 'none.sock'))
  } catch (error) {
    if (!(error instanceof DataDirectoryLocked)) throw error
    throw new Error(
      `${directory} belongs to another recorder, process ${error.pid}: stop it, or record into another lake`,
      { cause: error },
    )
  }
}
