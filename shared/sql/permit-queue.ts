// A bounded number of permits with a bounded line of waiters, first come first served. It keeps the driver from ever
// being given more statements than it has connections: past that point the driver would pipeline them behind whatever
// happens to run, and its own line has no end.

/** Hands the permit to the next waiter. Calling it again does nothing. */
export type ReleasePermit = () => void

export class PermitQueue {
  readonly #waitersMax: number
  readonly #refusal: (reason: string) => Error
  /** Each is called when its turn has come. */
  readonly #waiters = new Set<() => void>()
  #free: number

  /** `refusal` makes the error for those who find the line full or wait too long. */
  constructor(options: { permits: number; waitersMax: number; refusal: (reason: string) => Error }) {
    this.#free = options.permits
    this.#waitersMax = options.waitersMax
    this.#refusal = options.refusal
  }

  /** Waits at most `waitMs`; rejects with the signal's reason when it aborts first. */
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
      const leave = (reason: unknown): void => {
        this.#waiters.delete(grant)
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        reject(reason)
      }
      const onAbort = (): void => leave(signal?.reason)
      const timer = setTimeout(() => leave(this.#refusal(`none was free in ${waitMs} ms`)), waitMs)
      signal?.addEventListener('abort', onAbort, { once: true })
      const grant = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        resolve()
      }
      this.#waiters.add(grant)
    })
  }

  #release(): void {
    const [next] = this.#waiters
    if (next === undefined) {
      this.#free += 1
    } else {
      this.#waiters.delete(next)
      next()
    }
  }
}
