// How long anything waits before it tries again: twice as long after each failure in a row, up to a bound, and shortened
// by chance where several that failed at once would otherwise come back at once.

export interface BackOff {
  /** The longest wait after the first failure. */
  readonly firstMs: number
  /** The longest wait of all. */
  readonly maxMs: number
  /** Waits of the full length, for what is alone with the thing it tries; else each is half to all of it. */
  readonly isExact?: boolean
}

/** A request to an upstream, within one run of its source. */
export const UPSTREAM_BACK_OFF: BackOff = { firstMs: 500, maxMs: 30_000 }

/** A recorder's connection to an exchange, and what it subscribes to there. */
export const FEED_BACK_OFF: BackOff = { firstMs: 500, maxMs: 30_000 }

/** The transfer of an object to or from object storage; what is tried at most is `SYNC_ATTEMPTS_MAX`. */
export const TRANSFER_BACK_OFF: BackOff = { firstMs: 500, maxMs: 4_000 }

/** The embedded store's thread. */
export const EMBEDDED_STORE_BACK_OFF: BackOff = { firstMs: 500, maxMs: 16_000, isExact: true }

/** A task of the ingest that failed as a whole. */
const TASK_BACK_OFF: BackOff = { firstMs: 5_000, maxMs: 5 * 60_000 }
/** Times a task's interval that it pauses at most. */
const TASK_INTERVALS_PAUSED_MAX = 2
const TASK_PAUSE_MS_MAX_LEAST = 15_000

/** For a task that runs every `intervalMs`: what is asked for every few seconds is not missed for minutes after an outage. */
export function taskBackOff(intervalMs: number): BackOff {
  const pausedMs = Math.max(intervalMs * TASK_INTERVALS_PAUSED_MAX, TASK_PAUSE_MS_MAX_LEAST)
  return { ...TASK_BACK_OFF, maxMs: Math.min(pausedMs, TASK_BACK_OFF.maxMs) }
}

/**
 * A task that failed because the relational store did, most often for want of space: nobody else is asked for it, and it
 * goes on soon when the store does.
 */
const STORE_PAUSE_MS_MAX = 20_000

/** For a task that runs every `intervalMs` and whose store has failed. */
export function storeTaskBackOff(intervalMs: number): BackOff {
  const { maxMs, ...backOff } = taskBackOff(intervalMs)
  return { ...backOff, maxMs: Math.min(maxMs, STORE_PAUSE_MS_MAX) }
}

/** New connections for books that are owed and do not come: each is a gap for the books that do. */
export function vainRefreshBackOff(intervalMs: number): BackOff {
  return { firstMs: intervalMs, maxMs: 64 * intervalMs, isExact: true }
}

/** Doublings beyond which every bound here is reached, and numbers stay small. */
const DOUBLINGS_MAX = 20

/** Milliseconds to wait after `failures` (at least 1) in a row. `random` gives numbers from 0 to 1. */
export function backOffMs(backOff: BackOff, failures: number, random: () => number = Math.random): number {
  const doublings = Math.min(Math.max(failures - 1, 0), DOUBLINGS_MAX)
  const longestMs = Math.min(backOff.firstMs * 2 ** doublings, backOff.maxMs)
  return backOff.isExact === true ? longestMs : Math.ceil(((1 + random()) * longestMs) / 2)
}
