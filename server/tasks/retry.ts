// Retries work that may fail temporarily, such as a transfer to or from object storage.

import { SYNC_ATTEMPTS_MAX } from '../../shared/limits.ts'
import { type BackOff, backOffMs, TRANSFER_BACK_OFF } from './back-off.ts'
import { type Clock, SYSTEM_CLOCK } from './clock.ts'

export interface RetryOptions {
  /** Stops the attempts and the pauses between them. */
  readonly signal?: AbortSignal
  readonly attemptsMax?: number
  readonly backOff?: BackOff
  readonly clock?: Clock
  /** Whether retrying cannot help. */
  readonly isFinal?: (error: unknown) => boolean
}

/** The result of the first attempt that succeeds. Rejects with the error of the last one, or the signal's reason. */
export async function retried<Value>(
  work: (attempt: number) => Promise<Value>,
  options: RetryOptions,
): Promise<Value> {
  const {
    signal,
    attemptsMax = SYNC_ATTEMPTS_MAX,
    backOff = TRANSFER_BACK_OFF,
    clock = SYSTEM_CLOCK,
  } = options
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt)
    } catch (error) {
      signal?.throwIfAborted()
      if (attempt === attemptsMax || options.isFinal?.(error) === true) throw error
      await clock.sleep(backOffMs(backOff, attempt), signal)
    }
  }
}
