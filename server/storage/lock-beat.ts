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

/** Writes a byte of the owner's lock file repeatedly, and checks that the file is still the lock. */
export class LockBeat {
  readonly #path: string
  readonly #file: FileHandle
  readonly #timer: NodeJS.Timeout
  readonly #onLost: (error: Error) => void
  #running: Promise<void> | undefined

  constructor(path: string, file: FileHandle, onLost: (error: Error) => void) {
    this.#path = path
    this.#file = file
    this.#onLost = onLost
    this.#timer = setInterval(() => {
      this.#running ??= this.#beat().finally(() => {
        this.#running = undefined
      })
    }, BEAT_MS)
    this.#timer.unref()
  }

  async end(): Promise<void> {
    clearInterval(this.#timer)
    await this.#running
    await this.#file.close().catch(() => {})
  }

  async #beat(): Promise<void> {
    try {
      // In place, which needs no space on most file systems. If the write fails, only the time is updated.
      await this.#file.write('{', 0).catch(() => this.#file.utimes(new Date(), new Date()))
      const [own, found] = await Promise.all([
        this.#file.stat({ bigint: true }),
        stat(this.#path, { bigint: true }).catch(noneThere),
      ])
      // If the lock was removed, it has no owner yet; the next beat notices a new one.
      if (found === undefined || own.ino === found.ino) return
    } catch {
      // A file system that does not respond shows nothing about the lock; the next beat checks again.
      return
    }
    clearInterval(this.#timer)
    this.#onLost(new Error(`the lock ${this.#path} was taken by another process`))
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
