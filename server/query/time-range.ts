// Instants and dates in requests. An instant is RFC 3339 with a zone, or a date. A date means its midnight UTC or, as the end of
// a range, the end of that date. Ranges include their start. Ranges of instants exclude the end, except for close times, which
// include it, and for candles (contract.md 2).

import { addDays, utcDateStartMs } from '../../shared/utc-date.ts'

const INSTANT =
  /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?<fraction>\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Milliseconds since the epoch, truncated, or `undefined` if the text is not an instant. */
export function instantMs(text: string): number | undefined {
  const dateMs = utcDateStartMs(text)
  if (dateMs !== undefined) return dateMs
  const date = INSTANT.exec(text)?.[1]
  if (date === undefined || utcDateStartMs(date) === undefined) return undefined
  const ms = Date.parse(text.toUpperCase().replace(/(\.\d{3})\d+/, '$1'))
  return Number.isNaN(ms) ? undefined : ms
}

/** The nanoseconds of an instant beyond its milliseconds. */
export function nsBeyondMs(text: string): bigint {
  return BigInt((INSTANT.exec(text)?.groups?.['fraction']?.slice(4) ?? '').padEnd(6, '0'))
}

/** As `instantMs`, for the end of a range: a date means the midnight after it. */
export function rangeEndMs(text: string): number | undefined {
  return utcDateStartMs(text) === undefined ? instantMs(text) : utcDateStartMs(addDays(text, 1))
}

/** The same for an end that is included: a date means its last millisecond. */
export function lastInstantMs(text: string): number | undefined {
  const endMs = rangeEndMs(text)
  return endMs === undefined || utcDateStartMs(text) === undefined ? endMs : endMs - 1
}
