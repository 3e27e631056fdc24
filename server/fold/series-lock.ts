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

  constructor(what: string, { pid, host }: DataDirectoryLocked, waitMs: number) {
    const owner = `process ${pid} on ${host}`
    super(
      `${owner} has been writing to ${what} for ${waitMs >= 60_000 ? `${waitMs / 60_000} minutes` : 'some time'}`,
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

export class MergeLock {
  readonly #lock: DataDirectoryLock
  readonly #directory: string
  /** The outermost directory that is removed with the lock while it is empty. */
  readonly #first: string

  private constructor(lock: DataDirectoryLock, directory: string, first: string) {
    this.#lock = lock
    this.#directory = directory
    this.#first = first
  }

  /**
   * Takes the lock of a place, in a directory that is made for it.
   * @param what names for people what is written to
   * @throws {MergeBusy} when another writer holds it for too long
   */
  static async acquire(
    place: MergePlace,
    what: string,
    { waitMs, signal, onWait, onLost }: MergeLockOptions,
  ): Promise<MergeLock> {
    const directory = resolve(mergeLockDirectory(place))
    // Directories that another writer made, and could not remove while this one used them, are removed with this lock.
    const shared = resolve(lobSourceDirectory(place.lake, place.source))
    let first = shared
    let isReported = false
    let goneCount = 0
    for (let waitedMs = 0; ;) {
      signal?.throwIfAborted()
      try {
        const made = await mkdir(directory, { recursive: true })
        if (made !== undefined && made.length < first.length) first = made
        const socketPath = join(directory, 'none.sock')
        const lock = await DataDirectoryLock.acquire(directory, socketPath, onLost, { isOfThread: true })
        return new MergeLock(lock, directory, first)
      } catch (error) {
        const isGone = isErrno(error, 'ENOENT')
        // Another writer has removed the directory that it made.
        if (isGone && ++goneCount < ATTEMPTS_MAX) continue
        if (!(error instanceof DataDirectoryLocked) || waitedMs >= waitMs) {
          await removeWhileEmpty(directory, first)
          throw error instanceof DataDirectoryLocked ? new MergeBusy(what, error, waitMs) : error
        }
        if (!isReported) onWait?.(`process ${error.pid} on ${error.host}`)
        isReported = true
        await delay(LOOK_MS, undefined, { signal })
        waitedMs += LOOK_MS
      }
    }
  }

  async release(): Promise<void> {
    await this.#lock.release()
    await removeWhileEmpty(this.#directory, this.#first)
  }
}

/** A series of a lake. */
export interface SeriesPlace {
  readonly lake: string
  readonly source: LobSource
  readonly series: string
}

/** A series of a lake, or, without one, a whole source. */
type MergePlace = Omit<SeriesPlace, 'series'> & { readonly series?: string }

/** Takes the lock of a series' files. A caller that takes several takes them in the order of their names. */
export async function lockSeries(place: SeriesPlace, options: MergeLockOptions): Promise<MergeLock> {
  const what = `the files of ${place.series} (${place.source}) in the lake ${place.lake}`
  return await MergeLock.acquire(place, what, options)
}

/** Takes the lock of a source's raw segments and of what is derived from them. Take it before the locks of series. */
export async function lockSource(
  { lake, source }: Omit<SeriesPlace, 'series'>,
  options: MergeLockOptions,
): Promise<MergeLock> {
  return await MergeLock.acquire({ lake, source }, `the lake ${lake}`, options)
}

/**
 * Runs `work` while no other import and no fold changes the source's part of the lake. The signal aborts if another writer has
 * taken over the lock.
 * @throws {MergeBusy}
 */
export async function withSource<T>(
  place: Omit<SeriesPlace, 'series'>,
  options: Omit<MergeLockOptions, 'onLost'>,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController()
  const lock = await lockSource(place, { ...options, onLost: (error) => lost.abort(error) })
  try {
    return await work(lost.signal)
  } finally {
    await lock.release()
  }
}

/**
 * Runs `work` while no other writer changes the series' files. The signal aborts if another writer has taken over the lock.
 * @throws {MergeBusy}
 */
export async function withSeries<T>(
  place: SeriesPlace,
  options: Omit<MergeLockOptions, 'onLost'>,
  work: (lost: AbortSignal) => Promise<T>,
): Promise<T> {
  const lost = new AbortController()
  const lock = await lockSeries(place, { ...options, onLost: (error) => lost.abort(error) })
  try {
    return await work(lost.signal)
  } finally {
    await lock.release()
  }
}
