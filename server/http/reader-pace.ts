// Whether a client takes an answer at a fair rate. Only the time in which the answer waits for its client counts, so a slow
// producer does not count against the client. The kernel takes megabytes at once, then nothing until the client has taken a
// third of them. So the bytes taken are credited for some seconds.

/**
 * Longer than the kernel's pauses for a client that just keeps the rate. A new client gets a slot within 10 s: this credit, the
 * bytes that the kernel takes before it, and a second until the new client asks again.
 */
const CREDIT_S = 7

export class ReaderPace {
  readonly #fairBytesPerS: number
  readonly #nowMs: () => number
  #creditBytes: number
  #waitingSinceMs: number | undefined

  /** @param fairBytesPerS 0: no client counts as slow */
  constructor(fairBytesPerS: number, nowMs: () => number = () => performance.now()) {
    this.#fairBytesPerS = fairBytesPerS
    this.#nowMs = nowMs
    this.#creditBytes = this.#creditMaxBytes
  }

  took(bytes: number): void {
    this.#creditBytes = Math.min(this.#creditMaxBytes, this.#credit() + bytes)
    if (this.#waitingSinceMs !== undefined) this.#waitingSinceMs = this.#nowMs()
  }

  /** The answer waits for its client from now on. */
  beginWait(): void {
    this.#waitingSinceMs ??= this.#nowMs()
  }

  /** The wait is over. */
  endWait(): void {
    this.#creditBytes = this.#credit()
    this.#waitingSinceMs = undefined
  }

  /** Milliseconds until the client counts as slow, as in `StreamReader`. */
  get slowInMs(): number {
    const creditBytes = this.#credit()
    const isAwaited = this.#waitingSinceMs !== undefined || creditBytes < 0
    return this.#fairBytesPerS > 0 && isAwaited ? (1000 * creditBytes) / this.#fairBytesPerS : Infinity
  }

  get #creditMaxBytes(): number {
    return this.#fairBytesPerS * CREDIT_S
  }

  #credit(): number {
    if (this.#waitingSinceMs === undefined) return this.#creditBytes
    const spentBytes = ((this.#nowMs() - this.#waitingSinceMs) / 1000) * this.#fairBytesPerS
    return Math.max(-this.#creditMaxBytes, this.#creditBytes - spentBytes)
  }
}
