// Instants in all notations that recordings use → nanoseconds since the Unix epoch. The size of a number shows its unit: below
// 10^11 seconds, below 10^14 milliseconds, below 10^17 microseconds, else nanoseconds (for any instant from 1973 to 2262).

import { NS_PER_MS, NS_PER_SECOND, utcDateStartMs } from '../../shared/utc-date.ts'

const RFC3339 =
  /^(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(?: ?(?:[Zz]|UTC|GMT)| ?([+-]\d{2})(?::?(\d{2}))?)$/
const DECIMAL = /^(\d{1,19})(?:\.(\d+))?$/
const DIGITS_MAX = 19
/** A number with this many digits is a safe integer, which is converted to BigInt faster than text. */
const SAFE_DIGITS = 15
/** Numbers of at least this size are nanoseconds. */
const NANOSECONDS_MIN = 100_000_000_000_000_000n
const SECOND_LENGTH = '2026-06-24T15:49:55'.length
const ZERO = 48
const COLON = 58
// The end of INT64 nanoseconds, minus a day of margin.
const LAST_NS = 9_223_286_400_000_000_000n

/**
 * A number, a text of digits (a fraction is allowed) or an RFC 3339 time with its zone, also as ISO 8601 and databases write it
 * (`+0000`, `+00`, ` UTC`, a decimal comma). `undefined` for anything else, including a time without a zone or outside 1970–2262.
 */
export function instantOf(value: unknown): bigint | undefined {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) && value >= 0 ? ofMagnitude(BigInt(value)) : ofDecimal(String(value))
  }
  if (typeof value !== 'string') return undefined
  return value.charCodeAt(4) === 45 ? ofRfc3339(value) : ofDecimal(value)
}

/** A number of seconds, milliseconds or microseconds. */
function ofSafe(value: number): bigint | undefined {
  if (value < 100_000_000_000) return inRange(BigInt(value) * BigInt(NS_PER_SECOND))
  return inRange(BigInt(value) * (value < 100_000_000_000_000 ? NS_PER_MS : 1_000n))
}

function ofMagnitude(value: bigint): bigint | undefined {
  return inRange(value >= NANOSECONDS_MIN ? value : value * nsPerUnit(value))
}

function nsPerUnit(value: bigint): bigint {
  if (value < 100_000_000_000n) return BigInt(NS_PER_SECOND)
  if (value < 100_000_000_000_000n) return NS_PER_MS
  return value < NANOSECONDS_MIN ? 1_000n : 1n
}

function ofDecimal(text: string): bigint | undefined {
  if (text.length <= DIGITS_MAX && areDigits(text))
    return text.length <= SAFE_DIGITS ? ofSafe(Number(text)) : ofMagnitude(BigInt(text))
  const match = DECIMAL.exec(text)
  if (match === null) return undefined
  const whole = BigInt(match[1]!)
  const unit = nsPerUnit(whole)
  const fraction = match[2]
  if (fraction === undefined) return ofMagnitude(whole)
  const places = String(unit).length - 1
  return inRange(whole * unit + BigInt(fraction.slice(0, places).padEnd(places, '0') || '0'))
}

// Thousands of messages share a date in the same notation, so its start is cached.
let cachedDate = ''
let cachedDayNs = 0n

function ofRfc3339(text: string): bigint | undefined {
  if (cachedDate !== '' && text.startsWith(cachedDate)) {
    const nanoseconds = utcTimeNs(text)
    if (nanoseconds !== undefined) return inRange(cachedDayNs + BigInt(nanoseconds))
  }
  const match = RFC3339.exec(text)
  if (match === null) return undefined
  const [, date, time, fraction, zoneHours, zoneMinutes] = match
  const zone = zoneHours === undefined ? 'Z' : `${zoneHours}:${zoneMinutes ?? '00'}`
  const dayMs = utcDateStartMs(date!)
  const ms = dayMs === undefined ? NaN : Date.parse(`${date}T${time}${zone}`)
  if (dayMs === undefined || Number.isNaN(ms)) return undefined
  cachedDate = date!
  cachedDayNs = BigInt(dayMs) * NS_PER_MS
  const secondNs = BigInt(ms) * NS_PER_MS
  return inRange(fraction === undefined ? secondNs : secondNs + BigInt(fraction.slice(0, 9).padEnd(9, '0')))
}

// Nanoseconds of `…Thh:mm:ssZ`, with or without a fraction; `undefined`: use the regular expression.
function utcTimeNs(text: string): number | undefined {
  const last = text.length - 1
  const hours = twoDigits(text, 11)
  const minutes = twoDigits(text, 14)
  const seconds = twoDigits(text, 17)
  const isTime =
    text.charCodeAt(10) === 84 &&
    text.charCodeAt(13) === COLON &&
    text.charCodeAt(16) === COLON &&
    text.charCodeAt(last) === 90 &&
    hours < 24 &&
    minutes < 60 &&
    seconds < 60
  if (!isTime) return undefined
  const secondsNs = (hours * 3600 + minutes * 60 + seconds) * NS_PER_SECOND
  if (last === SECOND_LENGTH) return secondsNs
  const digits = last - SECOND_LENGTH - 1
  if (text.charCodeAt(SECOND_LENGTH) !== 46 || digits < 1 || digits > 9) return undefined
  let fraction = 0
  let unit = NS_PER_SECOND
  for (let index = SECOND_LENGTH + 1; index < last; index++) {
    const digit = text.charCodeAt(index) - ZERO
    if (!isDigit(digit)) return undefined
    unit /= 10
    fraction += digit * unit
  }
  return secondsNs + fraction
}

/** The number at `at`; NaN if there are not two digits. */
function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - ZERO
  const ones = text.charCodeAt(at + 1) - ZERO
  return isDigit(tens) && isDigit(ones) ? tens * 10 + ones : NaN
}

function areDigits(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (!isDigit(text.charCodeAt(index) - ZERO)) return false
  }
  return text.length > 0
}

function isDigit(digit: number): boolean {
  return digit >= 0 && digit <= 9
}

function inRange(ns: bigint): bigint | undefined {
  return ns >= 0n && ns <= LAST_NS ? ns : undefined
}
