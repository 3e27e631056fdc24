// Cross-origin requests from browsers, for the configured origins. Without any, no header is sent, and browsers do not let
// other pages read the answers. API keys are sent in headers, so credentials are never allowed.

import type { ReplyHeaders } from './endpoint.ts'
import type { Exchange } from './exchange.ts'

/** Seconds a browser may remember the answer to a preflight request. */
const CORS_MAX_AGE_S = 600

const EXPOSED =
  'Accept-Ranges, Content-Disposition, Content-Range, ETag, Lake-Version, Link, Missing-Dates, Partial-Dates, Repr-Digest, Retry-After, X-Request-Id'

export type CorsPolicy = ReturnType<typeof corsPolicy>

/** @param origins as browsers send them (`https://example.org`), or `*` for any */
export function corsPolicy(origins: readonly string[]) {
  const allowed = new Set(origins)
  return {
    /** The headers of any answer. */
    headers(exchange: Exchange): ReplyHeaders {
      if (allowed.has('*'))
        return { 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': EXPOSED }
      const origin = exchange.header('origin')
      if (!allowed.has(origin)) return { Vary: 'Origin' }
      return {
        'Access-Control-Allow-Origin': origin,
        'Access-Control-Expose-Headers': EXPOSED,
        Vary: 'Origin',
      }
    },
    /** The additional headers of the answer to a preflight request. */
    preflightHeaders(exchange: Exchange): ReplyHeaders {
      const isAllowed = allowed.has('*') || allowed.has(exchange.header('origin'))
      if (!isAllowed) return {}
      return {
        'Access-Control-Allow-Methods': 'GET, HEAD',
        'Access-Control-Allow-Headers': 'Authorization, X-API-Key, If-None-Match, If-Range, Range',
        'Access-Control-Max-Age': String(CORS_MAX_AGE_S),
      }
    },
  }
}
