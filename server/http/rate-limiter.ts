// A token bucket for each client. It holds `burst` requests and fills by `perSecond`; an empty bucket refuses requests. The
// number of buckets is bounded: the client unseen for longest is evicted first, and at worst gets a full bucket again.

import { BoundedMap } from '../../shared/bounded-map.ts'

/** Clients whose rate is remembered. */
const RATE_LIMIT_CLIENTS_MAX = 10_000

export interface RateLimit {
  /** Requests a second that a client may sustain. */
  readonly perSecond: number
  /** Requests that a client may send at once. */
  readonly burst: number
}

interface Bucket {
  tokens: number
  filledAtMs: number
}

/** Returns what takes a token of a client: 0 if there was one, else the seconds (at least 1) until the next one. */
export function rateLimiter(
  { perSecond, burst }: RateLimit,
  { nowMs = () => performance.now(), clientsMax = RATE_LIMIT_CLIENTS_MAX } = {},
): (client: string) => number {
  const buckets = new BoundedMap<Bucket>(clientsMax)
  return (client) => {
    const atMs = nowMs()
    const bucket = buckets.get(client) ?? { tokens: burst, filledAtMs: atMs }
    buckets.set(client, bucket)
    bucket.tokens = Math.min(burst, bucket.tokens + ((atMs - bucket.filledAtMs) / 1000) * perSecond)
    bucket.filledAtMs = atMs
    if (bucket.tokens < 1) return Math.max(1, Math.ceil((1 - bucket.tokens) / perSecond))
    bucket.tokens -= 1
    return 0
  }
}
