// Keeps permits for refused clients that retry when they were told to. They are not overtaken by clients that hold more, nor
// by clients that have had a permit since the refusal and ask for the next one.

/**
 * A permit is kept for a refused client from one second before its `Retry-After` until two seconds after it. Some clients
 * retry every second instead: for them it is kept for two seconds after each refusal.
 */
const KEPT_BEFORE_MS = 1_000
const KEPT_AFTER_MS = 2_000
const CLIENTS_MAX = 64

interface Refusal {
  readonly atMs: number
  readonly backAtMs: number
  readonly count: number
}

export class OwedPermits {
  readonly #heldBy: (client: string) => number
  /** Clients that were refused lately and have got no permit since. */
  readonly #refusals = new Map<string, Refusal>()
  /** When clients last gave permits back, while any client is owed one. */
  readonly #gaveBackMs = new Map<string, number>()

  /** `heldBy` is the number of permits that a client holds. */
  constructor(heldBy: (client: string) => number) {
    this.#heldBy = heldBy
  }

  refused(client: string, { count, retryAfterS }: { count: number; retryAfterS: number }): void {
    const atMs = performance.now()
    putLast(this.#refusals, client, { atMs, backAtMs: atMs + 1000 * retryAfterS, count })
  }

  /** The client got its permits, or waits for them. */
  cameBack(client: string): void {
    this.#refusals.delete(client)
  }

  gaveBack(client: string): void {
    if (this.#refusals.size > 0) putLast(this.#gaveBackMs, client, performance.now())
    else this.#gaveBackMs.clear()
  }

  /**
   * Permits that others are owed before a client gets one: those that are kept for them now; with `ever`, also those that
   * they may claim later.
   */
  countBefore(client: string, when?: 'ever'): number {
    if (this.#refusals.size === 0) return 0
    const nowMs = performance.now()
    const heldCount = this.#heldBy(client)
    const gaveBackMs = this.#gaveBackMs.get(client) ?? -Infinity
    let count = 0
    for (const [other, { atMs, backAtMs, count: wanted }] of this.#refusals) {
      const isKept = nowMs >= backAtMs - KEPT_BEFORE_MS || nowMs <= atMs + KEPT_AFTER_MS
      if (backAtMs + KEPT_AFTER_MS < nowMs) this.#refusals.delete(other)
      else if (other !== client && (when === 'ever' || isKept)) {
        const othersCount = this.#heldBy(other)
        if (othersCount < heldCount || (othersCount === heldCount && atMs < gaveBackMs)) count += wanted
      }
    }
    return count
  }
}

/** Puts an entry last; if there are too many, the first one is removed. */
function putLast<Value>(entries: Map<string, Value>, client: string, value: Value): void {
  entries.delete(client)
  entries.set(client, value)
  const [first] = entries.keys()
  if (entries.size > CLIENTS_MAX && first !== undefined) entries.delete(first)
}
