// A token bucket for each client: it holds `burst` requests, fills by `perSecond`, and an empty one refuses. The number
// of buckets is bounded: the client unseen for longest is forgotten first, which at worst gives it a full bucket again.

/** Clients whose rate is remembered; the one unseen for longest is forgotten first. */
const RATE_LIMIT_CLIENTS_MAX = 10_000

export interface RateLimit {
  /** Requests a second that a client may keep up. */
  readonly perSecond: number
  /** Requests it may make at once. */
  readonly burst: number
}

interface Bucket {
  tokens: number
  filledAtMs: number
}

export class RateLimiter {
  readonly #limit: RateLimit
  readonly #nowMs: () => number
  readonly #clientsMax: number
  /** In the order of use, so that the first is the one unseen for longest. */
  readonly #buckets = new Map<string, Bucket>()

  constructor(
    limit: RateLimit,
    { nowMs = () => performance.now(), clientsMax = RATE_LIMIT_CLIENTS_MAX } = {},
  ) {
    this.#limit = limit
    this.#nowMs = nowMs
    this.#clientsMax = clientsMax
  }

  get clientCount(): number {
    return this.#buckets.size
  }

  /** Takes a token: 0 when there was one, else the seconds (at least 1) until there will be. */
  take(client: string): number {
    const { perSecond, burst } = this.#limit
    const nowMs = this.#nowMs()
    const bucket = this.#buckets.get(client) ?? { tokens: burst, filledAtMs: nowMs }
    this.#buckets.delete(client)
    this.#buckets.set(client, bucket)
    if (this.#buckets.size > this.#clientsMax) this.#forgetOldest()
    bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.filledAtMs) / 1000) * perSecond)
    bucket.filledAtMs = nowMs
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond))
    bucket.tokens -= 1
    return 0
  }

  #forgetOldest(): void {
    const oldest = this.#buckets.keys().next().value
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
