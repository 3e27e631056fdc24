// Lock owners that do not listen on a socket write into the lock file repeatedly, so that owners on different machines notice each
// other through the file alone.

import type { FileHandle } from 'node:fs/promises'
import { stat } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { noneThere } from '../../shared/errno.ts'

// A beating lock is written at this interval. If it does not change while it is watched, or was already old, it is abandoned.
// Clocks of machines that share a file system may differ by less than BEAT_ABANDONED_MS.
const BEAT_MS = 1_000
const BEAT_WATCH_MS = 10_000
const BEAT_ABANDONED_MS = 5 * 60_000
const BEAT_LOOK_MS = 100

/** Writes a byte of the owner's lock file repeatedly, and checks that the file is still the lock. Returns a function that ends it. */
export function beatLock(
  path: string,
  file: FileHandle,
  onLost: (error: Error) => void,
): () => Promise<void> {
  let running: Promise<void> | undefined
  const beat = async (): Promise<void> => {
    try {
      // In place, which needs no space on most file systems. If the write fails, only the time is updated.
      await file.write('{', 0).catch(() => file.utimes(new Date(), new Date()))
      const [own, found] = await Promise.all([
        file.stat({ bigint: true }),
        stat(path, { bigint: true }).catch(noneThere),
      ])
      // If the lock was removed, it has no owner yet; the next beat notices a new one.
      if (found === undefined || own.ino === found.ino) return
    } catch {
      // A file system that does not respond shows nothing about the lock; the next beat checks again.
      return
    }
    clearInterval(timer)
    onLost(new Error(`the lock ${path} was taken by another process`))
  }
  const timer = setInterval(() => {
    running ??= beat().finally(() => (running = undefined))
  }, BEAT_MS)
  timer.unref()
  return async () => {
    clearInterval(timer)
    await running
    await file.close().catch(() => {})
  }
}

/** Watches a lock for longer than its owner takes to write it again. */
export async function isBeating(path: string, draftPath: string, freshMs = -1): Promise<boolean> {
  // The draft was just written, with a time from the same clock as the lock's.
  const [first, draft] = await Promise.all([modifiedMs(path), modifiedMs(draftPath)])
  if (first === undefined) return false
  if (draft !== undefined && draft - first > BEAT_ABANDONED_MS) return false
  if (draft !== undefined && draft - first < freshMs) return true
  for (const startMs = performance.now(); performance.now() - startMs < BEAT_WATCH_MS;) {
    await delay(BEAT_LOOK_MS)
    const found = await modifiedMs(path)
    if (found !== first) return found !== undefined
  }
  return false
}

async function modifiedMs(path: string): Promise<number | undefined> {
  return (await stat(path).catch(noneThere))?.mtimeMs
}
