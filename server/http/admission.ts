// Decides whether a request is admitted: by its API key, if keys are configured, and by its client's rate, if a limit is set.
// Probes are always admitted; documentation needs no key. A wrong key is counted under the client's address.

import { ApiError } from '../../shared/errors.ts'
import { type ApiKey, keyRing, presentedKey } from './api-keys.ts'
import { clientOf } from './client-address.ts'
import type { Access } from './endpoint.ts'
import type { Exchange } from './exchange.ts'
import { type RateLimit, rateLimiter } from './rate-limiter.ts'

export interface AdmissionOptions {
  /** Empty: no key is required. */
  readonly apiKeys: readonly ApiKey[]
  readonly rateLimit: RateLimit | null
  readonly trustedProxies: number
}

export type Admission = ReturnType<typeof admission>

export function admission({ apiKeys, rateLimit, trustedProxies }: AdmissionOptions) {
  const keys = apiKeys.length === 0 ? undefined : keyRing(apiKeys)
  const take = rateLimit === null ? undefined : rateLimiter(rateLimit)
  return {
    /** Whether a text is a configured key; undefined without configured keys. */
    isKey: keys?.has,
    /**
     * The name of the client's key, if it has one.
     * @throws {ApiError} `rate_limited` (429) or `unauthorized` (401)
     */
    admit(exchange: Exchange, access: Access): string | undefined {
      if (access === 'probe') return undefined
      const name = keys?.nameOf(presentedKey(exchange))
      const waitS = take?.(clientOf(exchange, name, trustedProxies)) ?? 0
      if (waitS > 0)
        throw new ApiError('rate_limited', `Too many requests from this client; retry in ${waitS} s.`, {
          headers: { 'Retry-After': String(waitS) },
        })
      if (keys !== undefined && name === undefined && access === 'data') throw unauthorized(exchange)
      return name
    },
  }
}

function unauthorized(exchange: Exchange): ApiError {
  const isGiven = presentedKey(exchange) !== ''
  const detail = isGiven
    ? 'The API key is not known.'
    : 'An API key is needed, as "Authorization: Bearer <key>" or "X-API-Key: <key>".'
  const challenge = `Bearer realm="bookcast"${isGiven ? ', error="invalid_token"' : ''}`
  return new ApiError('unauthorized', detail, { headers: { 'WWW-Authenticate': challenge } })
}
