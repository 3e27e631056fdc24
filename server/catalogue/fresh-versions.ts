// Reads the current versions of the store's datasets. Each caller gets versions that were read after its call. Calls during a
// read share the next read, so that only one is running, however many calls there are.

import { withinTime } from '../../shared/within-time.ts'
import type { DataVersions } from './catalogue-feed.ts'

/** Callers do not wait longer than this for the store, because they can do without its answer. */
const WAIT_MS_MAX = 1_000

/** Resolves to undefined while the store is unreachable or slow. Never rejects. */
export type FreshVersions = () => Promise<DataVersions | undefined>

/** @param isAway whether the store is known to be unreachable: then it is not asked */
export function freshVersions(read: () => Promise<DataVersions>, isAway: () => boolean): FreshVersions {
  let running: { readonly versions: ReturnType<FreshVersions>; readonly startMs: number } | undefined
  let next: ReturnType<FreshVersions> | undefined
  const begin: FreshVersions = () => {
    const versions = read()
      .catch(() => undefined)
      .finally(() => (running = undefined))
    running = { versions, startMs: performance.now() }
    return versions
  }
  return async () => {
    if (isAway()) return undefined
    if (running === undefined) return withinTime(begin(), WAIT_MS_MAX)
    if (performance.now() - running.startMs > WAIT_MS_MAX) return undefined
    next ??= running.versions.then(async () => {
      next = undefined
      return begin()
    })
    return withinTime(next, WAIT_MS_MAX)
  }
}
