// The pause before a retry. It doubles with each failure in a row, up to a bound. Jitter shortens it, so that clients that
// failed together do not retry together.

export interface BackOff {
  /** The longest wait after the first failure. */
  readonly firstMs: number
  /** The longest wait of all. */
  readonly maxMs: number
  /** No jitter, if no other client retries the same thing; otherwise a pause is half to all of its full length. */
  readonly isExact?: boolean
}

/** A request to an upstream, within one run of its source. */
export const UPSTREAM_BACK_OFF: BackOff = { firstMs: 500, maxMs: 30_000 }

/** A recorder's connection to an exchange, and its subscriptions. */
export const FEED_BACK_OFF: BackOff = { firstMs: 500, maxMs: 30_000 }

/** The transfer of an object to or from object storage, in at most `SYNC_ATTEMPTS_MAX` attempts. */
export const TRANSFER_BACK_OFF: BackOff = { firstMs: 500, maxMs: 4_000 }

/** The embedded store's thread. */
export const EMBEDDED_STORE_BACK_OFF: BackOff = { firstMs: 500, maxMs: 16_000, isExact: true }

/** A task of the ingest that failed as a whole. */
const TASK_BACK_OFF: BackOff = { firstMs: 5_000, maxMs: 5 * 60_000 }
/** A task pauses for at most this multiple of its interval. */
const TASK_INTERVALS_PAUSED_MAX = 2
const TASK_PAUSE_MS_MAX_LEAST = 15_000

/** For a task that runs every `intervalMs`. A task with a short interval is retried soon after an outage. */
export function taskBackOff(intervalMs: number): BackOff {
  const pausedMs = Math.max(intervalMs * TASK_INTERVALS_PAUSED_MAX, TASK_PAUSE_MS_MAX_LEAST)
  return { ...TASK_BACK_OFF, maxMs: Math.min(pausedMs, TASK_BACK_OFF.maxMs) }
}

/**
 * The longest pause after a failure of the relational store, mostly for lack of disk space. Such retries burden no upstream,
 * and the task resumes soon after the store.
 */
const STORE_PAUSE_MS_MAX = 20_000

/** For a task that runs every `intervalMs` and whose store has failed. */
export function storeTaskBackOff(intervalMs: number): BackOff {
  const { maxMs, ...backOff } = taskBackOff(intervalMs)
  return { ...backOff, maxMs: Math.min(maxMs, STORE_PAUSE_MS_MAX) }
}

/** For new connections because requested books do not arrive. Each new connection is a gap for the books that do. */
export function vainRefreshBackOff(intervalMs: number): BackOff {
  return { firstMs: intervalMs, maxMs: 64 * intervalMs, isExact: true }
}

/** After this many doublings every bound here is reached, and numbers stay small. */
const DOUBLINGS_MAX = 20

/** Milliseconds to wait after `failures` (at least 1) in a row. `random` returns numbers from 0 to 1. */
export function backOffMs(backOff: BackOff, failures: number, random: () => number = Math.random): number {
  const doublings = Math.min(Math.max(failures - 1, 0), DOUBLINGS_MAX)
  const longestMs = Math.min(backOff.firstMs * 2 ** doublings, backOff.maxMs)
  return backOff.isExact === true ? longestMs : Math.ceil(((1 + random()) * longestMs) / 2)
}
