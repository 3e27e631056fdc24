// The permits of an endpoint whose work is expensive. A request takes what it needs or is refused at once: there is no
// queue to wait in, so a load balancer can try the next replica.

import { ApiError } from '../../shared/errors.ts'

/** Gives the permits back; a second call does nothing. */
export type ReleaseSlot = () => void

export interface SlotsOptions {
  readonly max: number
  /** Seconds a refused client is told to wait. */
  readonly retryAfterS: number
  /** Why a request is refused, without a full stop. */
  readonly refusal: string
}

export class Slots {
  readonly #options: SlotsOptions
  #takenCount = 0

  constructor(options: SlotsOptions) {
    this.#options = options
  }

  get takenCount(): number {
    return this.#takenCount
  }

  /**
   * Takes `count` permits. A request that needs more than there are gets in when nobody else is there.
   * @throws {ApiError} `too_many_requests` (429) when they are not free
   */
  take(count: number): ReleaseSlot {
    const { max, retryAfterS, refusal } = this.#options
    if (this.#takenCount > 0 && this.#takenCount + count > max) {
      throw new ApiError('too_many_requests', `${refusal}; retry in ${retryAfterS} s.`, {
        headers: { 'Retry-After': String(retryAfterS) },
      })
    }
    this.#takenCount += count
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#takenCount -= count
    }
  }
}
