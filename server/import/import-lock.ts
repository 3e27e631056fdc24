// One import at a time merges into a source's part of a lake: the ledger is one, and so is the order of several series.
// The lock lies beside the ledger while an import merges; besides it, it has that of each series that it touches, as
// anybody has who writes there. What an import reads, it reads before.

import type { LobSource } from '../../shared/lob-sources.ts'
import { MERGE_WAIT_MS_MAX, MergeLock, lockSeries } from './merge-lock.ts'

export interface ImportLockOptions {
  readonly lake: string
  readonly source: LobSource
  readonly signal: AbortSignal
  /** Another writes to the lake; this one goes on after it. */
  readonly onWait?: (owner: string) => void
  /** Another has taken the lock all the same, as after a long suspension: this one must not write any more. */
  readonly onLost: (error: Error) => void
}

/** Takes the lock of a series until the merging ends. Series come in the order of their names. */
export type TouchSeries = (series: string) => Promise<void>

/**
 * Runs `merge` while no other import merges into the source's part of the lake, and nobody else into the series that it
 * touches.
 * @throws {MergeBusy} names the process that has a lock, when that does not end within an hour
 */
export async function mergeAlone<T>(
  { lake, source, ...options }: ImportLockOptions,
  merge: (touch: TouchSeries) => Promise<T>,
): Promise<T> {
  const locks: MergeLock[] = []
  const waiting = { ...options, waitMs: MERGE_WAIT_MS_MAX }
  try {
    locks.push(await MergeLock.acquire({ lake, source }, `the lake ${lake}`, waiting))
    return await merge(async (series) => {
      locks.push(await lockSeries({ lake, source, series }, waiting))
    })
  } finally {
    for (const lock of locks.toReversed()) await lock.release()
  }
}
