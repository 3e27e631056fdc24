// Time and sleep as one injectable object, so that tests of ingest clients need not wait.

import { setTimeout as delay } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const SYSTEM_CLOCK: Clock = {
  nowMs: () => Date.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal })
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    }
  },
}
