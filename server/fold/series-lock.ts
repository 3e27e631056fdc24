// Locks for the files of a lake, held by imports, folds, recorders that publish, synchronizations and `prune`. The lock of a source
// protects its raw segments and manifests; the lock of a series protects its order-book files. Two writers without a lock would
// each replace what the other has just published. A lock whose process or thread has died is taken over. No lock file and no
// directory made for one stays behind.

import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isErrno } from '../../shared/errno.ts'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { removeWhileEmpty } from '../lake/empty-directories.ts'
import { DataDirectoryLock, DataDirectoryLocked } from '../storage/data-directory-lock.ts'

/** A writer waits at most this long: another one may fold whole days of many series first. */
export const MERGE_WAIT_MS_MAX = 3_600_000
/** Longer than a publication takes. A caller that does not wait for imports and folds waits this long, and retries later. */
export const BUSY_WAIT_MS_MAX = 5_000
const LOOK_MS = 250
/** Another writer may remove the directory that it made, between two steps of this one. */
const ATTEMPTS_MAX = 20

export interface MergeLockOptions {
  /** How long to wait for another writer; 0 tries once. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
  /** Called once if another writer holds the lock, with its name for people. */
  readonly onWait?: ((owner: string) => void) | undefined
  /** Another writer has taken over the lock, as after a long suspension: this one must stop writing. */
  readonly onLost: (error: Error) => void
}

/** Another writer holds the lock, and has not released it in time. */
export class MergeBusy extends Error {
  /** For people. */
  readonly owner: string

  constructor({ lake, source, series }: MergePlace, { pid, host }: DataDirectoryLocked, waitMs: number) {
    const files = series === undefined ? '' : `the files of ${series} (${source}) in `
    const owner = `process ${pid} on ${host}`
    super(
      `${owner} has been writing to ${files}the lake ${lake} for ${waitMs >= 60_000 ? `${waitMs / 60_000} minutes` : 'some time'}`,
    )
    this.name = 'MergeBusy'
    this.owner = owner
  }
}

/** The directory of the lock of a source, or of one of its series. */
export function mergeLockDirectory({ lake, source, series }: MergePlace): string {
  const feed = join(lobSourceDirectory(lake, source), 'feed')
  return series === undefined ? feed : join(feed, 'merging', series)
}

export interface MergeLock {
  release(): Promise<void>
}

/** A series of a lake. */
export interface SeriesPlace {
  readonly lake: string
  readonly source: LobSource
  readonly series: string
}

/** A series of a lake, or, without one, a whole source. */
type MergePlace = Omit<SeriesPlace, 'series'> & { readonly series?: string }

/**
 * Takes the lock of a place, in a directory that is made for it. A caller that takes several takes that of the source first, then
 * those of series in the order of their names.
 * @throws {MergeBusy} when another writer holds it for too long
 */
export async function takeLock(
  place: MergePlace,
  { waitMs, signal, onWait, onLost }: MergeLockOptions,
): Promise<MergeLock> {
  const directory = resolve(mergeLockDirectory(place))
  // The outermost directory that is removed with the lock while it is empty. Directories that another writer made, and could not
  // remove while this one used them, are removed with this lock.
  let first = resolve(lobSourceDirectory(place.lake, place.source))
  let isReported = false
  let goneCount = 0
  for (let waitedMs = 0; ;) {
    signal?.throwIfAborted()
    try {
      const made = await mkdir(directory, { recursive: true })
      if (made !== undefined && made.length < first.length) first = made
      const socketPath = join(directory, 'none.sock')
      const lock = await DataDirectoryLock.acquire(directory, socketPath, onLost, { isOfThread: true })
      const release = async (): Promise<void> => {
        await lock.release()
        await removeWhileEmpty(directory, first)
      }
      return { release }
    } catch (error) {
      const isGone = isErrno(error, 'ENOENT')
      // Another writer has removed the directory that it made.
      if (isGone && ++goneCount < ATTEMPTS_MAX) continue
      if (!(error instanceof DataDirectoryLocked) || waitedMs >= waitMs) {
        await removeWhileEmpty(directory, first)
        throw error instanceof DataDirectoryLocked ? new MergeBusy(place, error, waitMs) : error
      }
      if (!isReported) onWait?.(`process ${error.pid} on ${error.host}`)
      isReported = true
      await delay(LOOK_MS, undefined, { signal })
      waitedMs += LOOK_MS
    }
  }
}

/**
 * Runs `work` while no other writer changes the series' files or, without a series, the source's part of the lake. The signal aborts
 * if another writer has taken over the lock.
 * @throws {MergeBusy}
 */
export async function withLock<T>(
  place: MergePlace,
  options: Omit<MergeLockOptions, 'onLost'>,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController()
  const lock = await takeLock(place, { ...options, onLost: (error) => lost.abort(error) })
  try {
    return await work(lost.signal)
  } finally {
    await lock.release()
  }
}
