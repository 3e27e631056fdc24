// Whether a client takes an answer at a fair rate. Only the time in which the answer waits for its client counts: a slow
// producer is not the client's fault. The kernel takes megabytes at once and then nothing for as long as the client
// needs for a third of them, so what was taken is credited for some seconds.

/**
 * Longer than the kernel's pauses for a client that just keeps the rate. A newcomer is served within 10 s: this, what the kernel
 * takes before it, and a second until the newcomer asks again.
 */
const CREDIT_S = 7

export class ReaderPace {
  readonly #fairBytesPerS: number
  readonly #nowMs: () => number
  #creditBytes: number
  #waitingSinceMs: number | undefined

  /** @param fairBytesPerS 0: every client is fast enough */
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

  /** The answer goes on. */
  endWait(): void {
    this.#creditBytes = this.#credit()
    this.#waitingSinceMs = undefined
  }

  /** Until the client counts as slow, as `StreamReader` has it. */
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
