// A bounded number of permits with a bounded queue of waiters, first come, first served. It ensures that the driver never gets more
// statements than it has connections: it would pipeline further ones behind running statements, and its own queue is unbounded.

/** Passes the permit to the next waiter. Further calls have no effect. */
export type ReleasePermit = () => void

export class PermitQueue {
  readonly #waitersMax: number
  readonly #refusal: (reason: string) => Error
  /** The callbacks of the waiters, called when they get a permit. */
  readonly #waiters = new Set<() => void>()
  #free: number

  /** `refusal` makes the error for a caller that finds the queue full or waits too long. */
  constructor(options: { permits: number; waitersMax: number; refusal: (reason: string) => Error }) {
    this.#free = options.permits
    this.#waitersMax = options.waitersMax
    this.#refusal = options.refusal
  }

  /** Waits at most `waitMs`. Rejects with the signal's reason if it aborts first. */
  async take(waitMs: number, signal?: AbortSignal): Promise<ReleasePermit> {
    signal?.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
    } else {
      if (this.#waiters.size >= this.#waitersMax) throw this.#refusal(`${this.#waitersMax} already wait`)
      await this.#wait(waitMs, signal)
    }
    let isHeld = true
    return () => {
      if (isHeld) this.#release()
      isHeld = false
    }
  }

  #wait(waitMs: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (then: () => void): void => {
        this.#waiters.delete(grant)
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        then()
      }
      const grant = (): void => leave(resolve)
      const onAbort = (): void => leave(() => reject(signal?.reason))
      const refuse = (): void => reject(this.#refusal(`none was free in ${waitMs} ms`))
      const timer = setTimeout(() => leave(refuse), waitMs)
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiters.add(grant)
    })
  }

  #release(): void {
    const [next] = this.#waiters
    if (next === undefined) this.#free += 1
    else next()
  }
}
