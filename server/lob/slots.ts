// The permits of the order-book endpoint. A request takes one or is refused at once: there is no queue to wait in, so a
// load balancer can try the next replica.

import { ApiError } from '../../shared/errors.ts'
import { LOB_RETRY_AFTER_S } from '../../shared/limits.ts'

/** Gives the permit back; a second call does nothing. */
export type ReleaseSlot = () => void

export class Slots {
  readonly #max: number
  #takenCount = 0

  constructor(max: number) {
    this.#max = max
  }

  get takenCount(): number {
    return this.#takenCount
  }

  /** @throws {ApiError} `too_many_requests` (429) when all permits are taken */
  take(): ReleaseSlot {
    if (this.#takenCount >= this.#max) {
      const detail = `${this.#max} order-book requests are being processed, which is the most at once; retry in ${LOB_RETRY_AFTER_S} s.`
      throw new ApiError('too_many_requests', detail, {
        headers: { 'Retry-After': String(LOB_RETRY_AFTER_S) },
      })
    }
    this.#takenCount += 1
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#takenCount -= 1
    }
  }
}
