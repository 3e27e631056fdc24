// Reads the options for access: API keys, rate limits and CORS origins. Doubtful values are refused when the server starts: an
// API key that is silently ignored would be worse than none.

import { RATE_LIMIT_PER_SECOND_MAX } from '../../shared/limits.ts'
import { isJsonObject } from '../../shared/parsed-json.ts'
import { UsageError } from '../options/usage-error.ts'
import {
  integerOption,
  listOption,
  type OptionText,
  type ParsedOptions,
  positiveOption,
} from '../options/options.ts'
import { type ApiKey, sha256Hex } from '../http/api-keys.ts'
import type { RateLimit } from '../http/rate-limiter.ts'

const RATE_LIMIT_BURST_MAX = 1_000_000
const API_KEYS_MAX = 1_000
const API_KEY_CHARACTERS_MIN = 16

const KEY_NAME = /^[A-Za-z0-9_.-]{1,64}$/
/** Libraries encode other characters of a header in several ways, and a bearer token has no spaces. */
const KEY_TEXT = /^[!-~]+$/
const SHA256 = /^[0-9a-f]{64}$/i

function keyOfEntry(entry: unknown, origin: string): ApiKey {
  const { name, sha256 } = isJsonObject(entry) ? entry : {}
  if (typeof name !== 'string' || typeof sha256 !== 'string' || !SHA256.test(sha256))
    throw new UsageError(
      `${origin} must hold objects {"name": …, "sha256": 64 hexadecimal digits}; printf %s <key> | sha256sum makes them`,
    )
  return { name, sha256: sha256.toLowerCase() }
}

/** The message must not show the key. */
function keyOfText(text: string, index: number, origin: string): ApiKey {
  const equals = text.indexOf('=')
  const key = text.slice(equals + 1)
  if (equals === -1 || key.length < API_KEY_CHARACTERS_MIN || !KEY_TEXT.test(key))
    throw new UsageError(
      `${origin}: entry ${index + 1} must be <name>=<key> with a key of at least ${API_KEY_CHARACTERS_MIN} characters, all of them ASCII and none a space`,
    )
  return { name: text.slice(0, equals), sha256: sha256Hex(key) }
}

/** @throws {UsageError} that names the entry at fault */
export function readApiKeys(option: OptionText | undefined): ApiKey[] {
  if (option === undefined) return []
  const { json, origin } = option
  const keys = Array.isArray(json)
    ? json.map((entry: unknown) => keyOfEntry(entry, origin))
    : listOption(option).map((text, index) => keyOfText(text, index, origin))
  if (keys.length === 0 || keys.length > API_KEYS_MAX)
    throw new UsageError(`${origin} must hold 1 to ${API_KEYS_MAX} keys, not ${keys.length}`)
  for (const [index, { name, sha256 }] of keys.entries()) {
    if (!KEY_NAME.test(name))
      throw new UsageError(
        `${origin}: the name of entry ${index + 1} must be letters, digits, dots, dashes, underscores`,
      )
    if (keys.findIndex((other) => other.name === name || other.sha256 === sha256) !== index)
      throw new UsageError(`${origin}: entry ${index + 1} repeats a name or a key`)
  }
  return keys
}

/** @throws {UsageError} that names the option at fault */
export function readRateLimit(options: ParsedOptions): RateLimit | null {
  const rate = options.get('rate-limit')
  const burst = options.get('rate-burst')
  if (rate === undefined) {
    if (burst !== undefined) throw new UsageError(`${burst.origin} needs --rate-limit besides`)
    return null
  }
  const perSecond = positiveOption(rate, RATE_LIMIT_PER_SECOND_MAX)
  return {
    perSecond,
    burst:
      burst === undefined
        ? Math.max(1, Math.ceil(2 * perSecond))
        : integerOption(burst, 1, RATE_LIMIT_BURST_MAX),
  }
}

/** Origins as browsers send them. @throws {UsageError} for anything else */
export function readCorsOrigins(option: OptionText | undefined): string[] {
  const origins = listOption(option)
  for (const origin of origins) {
    const isOrigin = URL.canParse(origin) && new URL(origin).origin === origin
    if (origin !== '*' && !isOrigin)
      throw new UsageError(
        `${option?.origin} must be "*" or origins such as https://example.org, not ${JSON.stringify(origin)}`,
      )
  }
  return origins
}
