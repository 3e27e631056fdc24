// Decides whether a request is admitted: by its API key, if keys are configured, and by its client's rate, if a limit is set.
// Probes are always admitted; documentation needs no key. A wrong key is counted under the client's address.

import { ApiError } from '../../shared/errors.ts'
import { type ApiKey, ApiKeys, presentedKey } from './api-keys.ts'
import { clientOf } from './client-address.ts'
import type { Access } from './endpoint.ts'
import type { Exchange } from './exchange.ts'
import { type RateLimit, RateLimiter } from './rate-limiter.ts'

export interface AdmissionOptions {
  /** Empty: no key is required. */
  readonly apiKeys: readonly ApiKey[]
  readonly rateLimit: RateLimit | null
  readonly trustedProxies: number
}

export class Admission {
  readonly #keys: ApiKeys | undefined
  readonly #limiter: RateLimiter | undefined
  readonly #trustedProxies: number

  constructor({ apiKeys, rateLimit, trustedProxies }: AdmissionOptions) {
    this.#keys = apiKeys.length === 0 ? undefined : new ApiKeys(apiKeys)
    this.#limiter = rateLimit === null ? undefined : new RateLimiter(rateLimit)
    this.#trustedProxies = trustedProxies
  }

  /** Whether a text is a configured key; undefined without configured keys. */
  get isKey(): ((text: string) => boolean) | undefined {
    const keys = this.#keys
    return keys && ((text) => keys.has(text))
  }

  /**
   * The name of the client's key, if it has one.
   * @throws {ApiError} `rate_limited` (429) or `unauthorized` (401)
   */
  admit(exchange: Exchange, access: Access): string | undefined {
    if (access === 'probe') return undefined
    const name = this.#keys?.nameOf(presentedKey(exchange))
    if (this.#limiter !== undefined) this.#count(exchange, name)
    if (this.#keys !== undefined && name === undefined && access === 'data') throw unauthorized(exchange)
    return name
  }

  #count(exchange: Exchange, name: string | undefined): void {
    const waitS = this.#limiter?.take(clientOf(exchange, name, this.#trustedProxies)) ?? 0
    if (waitS > 0)
      throw new ApiError('rate_limited', `Too many requests from this client; retry in ${waitS} s.`, {
        headers: { 'Retry-After': String(waitS) },
      })
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
