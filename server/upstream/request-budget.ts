// A token bucket that plans instead of counting: it remembers when the bucket would be empty-handed and gives each
// request the wait until its token exists (generic cell rate algorithm). Requests therefore go out in the order asked,
// no timer runs while nobody waits, and a pause that an upstream asked for moves everybody back. A clock that is put back
// takes the plan with it: else nothing would go out until it has caught up.

export interface RequestRate {
  /** Requests that may go out at once after a rest. */
  readonly burst: number
  /** Milliseconds in which one request becomes available again. */
  readonly intervalMs: number
}

export class RequestBudget {
  readonly #intervalMs: number
  readonly #toleranceMs: number
  /** When the bucket is full again. */
  #fullAtMs = Number.NEGATIVE_INFINITY
  #pausedUntilMs = Number.NEGATIVE_INFINITY
  #nowMs = Number.NEGATIVE_INFINITY

  constructor(rate: RequestRate) {
    this.#intervalMs = rate.intervalMs
    this.#toleranceMs = (rate.burst - 1) * rate.intervalMs
  }

  /**
   * Takes the next token and returns how many milliseconds from `nowMs` it may be used. Takes nothing and returns
   * `undefined` when that is more than `waitMsMax`.
   */
  reserve(nowMs: number, waitMsMax: number): number | undefined {
    this.#noteTime(nowMs)
    // While the upstream asked for a pause, the plan starts at its end; else a burst would follow every pause.
    const fullAtMs = Math.max(this.#fullAtMs, nowMs, this.#pausedUntilMs)
    const startMs = Math.max(fullAtMs - this.#toleranceMs, nowMs, this.#pausedUntilMs)
    if (startMs - nowMs > waitMsMax) return undefined
    this.#fullAtMs = fullAtMs + this.#intervalMs
    return startMs - nowMs
  }

  /** Lets nothing go out for `pauseMs` from `nowMs` on. */
  pause(nowMs: number, pauseMs: number): void {
    this.#noteTime(nowMs)
    this.#pausedUntilMs = Math.max(this.#pausedUntilMs, nowMs + pauseMs)
  }

  #noteTime(nowMs: number): void {
    const backMs = Math.max(this.#nowMs - nowMs, 0)
    this.#nowMs = nowMs
    this.#fullAtMs -= backMs
    this.#pausedUntilMs -= backMs
  }
}
