// One at a time reads files of a lake, puts them together with others, and puts the result in their place: two would read
// the same files, and the one that ends later would put its own in the place of the other's. Imports do it, a recorder
// that publishes, and a push that finds something in object storage that the lake lacks. The lock of a process or thread
// that died is taken over; none stays when its owner ends in whatever way, nor does a directory that was made for it:
// whoever releases a lock last finds it empty, not necessarily the one that made it.

import { mkdir } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { isErrno } from '../../shared/errno.ts'
import { lobSourceDirectory } from '../../shared/lake-layout.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { removeWhileEmpty } from '../lake/empty-directories.ts'
import { DataDirectoryLock, DataDirectoryLocked } from '../storage/data-directory-lock.ts'

/** Others may merge whole days of many series first: so long anybody waits at most. */
export const MERGE_WAIT_MS_MAX = 3_600_000
const LOOK_MS = 250
/** Another may remove the directory that it had made between two steps of this one. */
const ATTEMPTS_MAX = 20

export interface MergeLockOptions {
  /** So long another's end is waited for; 0 looks once. */
  readonly waitMs: number
  readonly signal?: AbortSignal | undefined
  /** Another has it; told once, with its name for people. */
  readonly onWait?: ((owner: string) => void) | undefined
  /** Another has taken the lock all the same, as after a long suspension: this one must not write any more. */
  readonly onLost: (error: Error) => void
}

/** Another merges, and has not ended in time. */
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

/** The directory of the lock of a source's ledger, or of one of its series. */
export function mergeLockDirectory({ lake, source, series }: MergePlace): string {
  const feed = join(lobSourceDirectory(lake, source), 'feed')
  return series === undefined ? feed : join(feed, 'merging', series)
}

export class MergeLock {
  readonly #lock: DataDirectoryLock
  readonly #directory: string
  /** The outermost directory that goes with it while it is empty. */
  readonly #first: string

  private constructor(lock: DataDirectoryLock, directory: string, first: string) {
    this.#lock = lock
    this.#directory = directory
    this.#first = first
  }

  /**
   * Takes the lock of a place, in a directory that is made for it.
   * @param what names for people what is written to
   * @throws {MergeBusy} when another has it for too long
   */
  static async acquire(
    place: MergePlace,
    what: string,
    { waitMs, signal, onWait, onLost }: MergeLockOptions,
  ): Promise<MergeLock> {
    const directory = resolve(mergeLockDirectory(place))
    // Where another has made them and could not remove them, as this one was there, they go with this one.
    const shared = resolve(lobSourceDirectory(place.lake, place.source))
    let first = shared
    let isTold = false
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
        // The other has removed the directory, which it had made.
        if (isGone && ++goneCount < ATTEMPTS_MAX) continue
        if (!(error instanceof DataDirectoryLocked) || waitedMs >= waitMs) {
          await removeWhileEmpty(directory, first)
          throw error instanceof DataDirectoryLocked ? new MergeBusy(what, error, waitMs) : error
        }
        if (!isTold) onWait?.(`process ${error.pid} on ${error.host}`)
        isTold = true
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

/** A series of a lake, or, without one, the ledger of a source. */
type MergePlace = Omit<SeriesPlace, 'series'> & { readonly series?: string }

/** Takes the lock of a series' files. Who takes several takes them in the order of their names. */
export async function lockSeries(place: SeriesPlace, options: MergeLockOptions): Promise<MergeLock> {
  const what = `the files of ${place.series} (${place.source}) in the lake ${place.lake}`
  return await MergeLock.acquire(place, what, options)
}

/** Takes the lock of a source's raw segments and of what is derived from them. It comes before those of series. */
export async function lockSource(
  { lake, source }: Omit<SeriesPlace, 'series'>,
  options: MergeLockOptions,
): Promise<MergeLock> {
  return await MergeLock.acquire({ lake, source }, `the lake ${lake}`, options)
}

/**
 * Runs `work` while no other import and no rebuild changes the source's part of the lake. The signal says that another has
 * begun to all the same.
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
 * Runs `work` while nobody else writes to the series' files. The signal says that another has begun to all the same.
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
