// API keys identify clients. The server holds only the SHA-256 of each key and compares it in constant time with every
// configured key. So neither a leaked configuration nor the response time reveals a key.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { Exchange } from './exchange.ts'

export interface ApiKey {
  /** Names the client in the log and in the configuration. */
  readonly name: string
  /** 64 hexadecimal digits. */
  readonly sha256: string
}

export function sha256Hex(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/** The key of a request, from `X-API-Key` or a bearer token; empty when it has none. */
export function presentedKey(exchange: Exchange): string {
  const key = exchange.header('x-api-key')
  if (key !== '') return key
  return /^Bearer +(\S+)$/i.exec(exchange.header('authorization'))?.[1] ?? ''
}

export function keyRing(keys: readonly ApiKey[]) {
  const digests = new Set(keys.map(({ sha256 }) => sha256.toLowerCase()))
  const known = keys.map(({ name, sha256 }) => ({ name, digest: Buffer.from(sha256, 'hex') }))
  return {
    /** Whether a text is a key. Only the log uses this; it admits no client. */
    has: (text: string): boolean => digests.has(sha256Hex(text)),
    /** The name of the client whose key this is. */
    nameOf(key: string): string | undefined {
      if (key === '') return undefined
      const digest = createHash('sha256').update(key).digest()
      let name: string | undefined
      for (const candidate of known) if (timingSafeEqual(candidate.digest, digest)) name = candidate.name
      return name
    },
  }
}
