// A token bucket that plans instead of counting (generic cell rate algorithm): it stores when the bucket will be full, and tells
// each request how long to wait for its token. So requests go out in order, no timer runs while none waits, and a pause that an
// upstream asked for delays all of them. If the clock is set back, the plan moves with it; otherwise no request would go out until
// the clock has caught up.

export interface RequestRate {
  /** Requests that may go out at once after a pause. */
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
   * Takes the next token and returns how many milliseconds after `nowMs` it may be used. If that is more than `waitMsMax`, takes
   * nothing and returns `undefined`.
   */
  reserve(nowMs: number, waitMsMax: number): number | undefined {
    this.#noteTime(nowMs)
    // During a pause the plan starts at its end; otherwise a burst would follow every pause.
    const fullAtMs = Math.max(this.#fullAtMs, nowMs, this.#pausedUntilMs)
    const startMs = Math.max(fullAtMs - this.#toleranceMs, nowMs, this.#pausedUntilMs)
    if (startMs - nowMs > waitMsMax) return undefined
    this.#fullAtMs = fullAtMs + this.#intervalMs
    return startMs - nowMs
  }

  /** Delays all requests until `pauseMs` after `nowMs`. */
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
