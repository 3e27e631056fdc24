// One import at a time merges into a source's part of a lake: two would read the same files, and the one that ends later
// would put its own in the place of the other's. The lock lies beside the ledger while an import merges; that of a process
// which died is taken over. What an import reads, it reads before.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lake-layout.ts'
import { removeWhileEmpty } from '../lake/empty-directories.ts'
import { DataDirectoryLock, DataDirectoryLocked } from '../storage/data-directory-lock.ts'

const WAIT_MS_MAX = 3_600_000
const LOOK_MS = 250

export interface ImportLockOptions {
  readonly lake: string
  readonly source: LobSource
  readonly signal: AbortSignal
  /** Another import merges into the lake; this one goes on after it. */
  readonly onWait?: (owner: string) => void
  /** Another has taken the lock all the same, as after a long suspension: this one must not write any more. */
  readonly onLost: (error: Error) => void
}

/**
 * Runs `merge` while no other import merges into the source's part of the lake; leaves no directory that it made for it.
 * @throws {Error} names the import that has the lock, when that does not end within an hour
 */
export async function mergeAlone<T>(options: ImportLockOptions, merge: () => Promise<T>): Promise<T> {
  const directory = join(lobSourceDirectory(options.lake, options.source), 'feed')
  const { lock, first } = await acquire(directory, options)
  try {
    return await merge()
  } finally {
    await lock.release()
    if (first !== undefined) await removeWhileEmpty(directory, first)
  }
}

async function acquire(directory: string, { lake, signal, onWait, onLost }: ImportLockOptions) {
  let first: string | undefined
  let isTold = false
  for (let waitedMs = 0; ; waitedMs += LOOK_MS) {
    signal.throwIfAborted()
    first ??= await mkdir(directory, { recursive: true })
    try {
      return { lock: await DataDirectoryLock.acquire(directory, join(directory, 'none.sock'), onLost), first }
    } catch (error) {
      const isGone = error instanceof Error && 'code' in error && error.code === 'ENOENT'
      if (!(error instanceof DataDirectoryLocked) && !isGone) throw error
      // The other has removed the directory, which it had made.
      if (isGone) first = undefined
      if (waitedMs >= WAIT_MS_MAX) {
        if (first !== undefined) await removeWhileEmpty(directory, first)
        throw error instanceof DataDirectoryLocked ? ownedBy(lake, error) : error
      }
      if (error instanceof DataDirectoryLocked && !isTold) {
        isTold = true
        onWait?.(`process ${error.pid} on ${error.host}`)
      }
      await delay(LOOK_MS, undefined, { signal })
    }
  }
}

function ownedBy(lake: string, cause: DataDirectoryLocked): Error {
  const text = `another import, process ${cause.pid} on ${cause.host}, has been writing to the lake ${lake} for an hour`
  return new Error(text, { cause })
}
