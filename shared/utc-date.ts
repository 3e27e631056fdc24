// UTC dates as `YYYY-MM-DD` strings, and instants as integers. Local time is not used.

export const MS_PER_DAY = 86_400_000
export const MS_PER_HOUR = 3_600_000
export const MS_PER_MINUTE = 60_000
export const HOURS_PER_DAY = 24
export const SECONDS_PER_DAY = 86_400
export const SECONDS_PER_HOUR = 3_600
export const NS_PER_SECOND = 1_000_000_000
export const NS_PER_MS = 1_000_000n
export const NS_PER_HOUR = 3_600_000_000_000n
export const NS_PER_DAY = 86_400_000_000_000n

// INT64 nanoseconds end on 2262-04-11. Before the epoch, nanoseconds would be negative.
const FIRST_DATE = '1970-01-01'
const LAST_DATE = '2262-04-10'

/** Milliseconds since the epoch of the date's midnight UTC, or `undefined` if the text is not a calendar date in this range. */
export function utcDateStartMs(date: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date) || date < FIRST_DATE || date > LAST_DATE) return undefined
  const ms = Date.parse(`${date}T00:00:00Z`)
  // Only days after the 28th can be invalid here. The check formats the date, which is the slowest part.
  return Number.isNaN(ms) || (date.slice(8) > '28' && utcDateOf(ms) !== date) ? undefined : ms
}

/** The UTC date of an instant given in milliseconds since the epoch. */
export function utcDateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}

/** The date `days` after (or, negative, before) a valid `date`. */
export function addDays(date: string, days: number): string {
  return utcDateOf(Date.parse(`${date}T00:00:00Z`) + days * MS_PER_DAY)
}

/** Every date from `from` to `to`, both inclusive; empty when `to` is before `from`. */
export function utcDatesBetween(from: string, to: string): string[] {
  const dates: string[] = []
  for (let date = from; date <= to; date = addDays(date, 1)) dates.push(date)
  return dates
}

/** English names of the months, January first, as exchanges use them in the names of events. */
export const MONTH_NAMES = [
  'january',
  'february',
  'march',
  'april',
  'may',
  'june',
  'july',
  'august',
  'september',
  'october',
  'november',
  'december',
] as const

/** The later instant, or the defined one. */
export function later(a: bigint, b: bigint | undefined): bigint
export function later(a: bigint | undefined, b: bigint): bigint
export function later(a: bigint | undefined, b: bigint | undefined): bigint | undefined
export function later(a: bigint | undefined, b: bigint | undefined): bigint | undefined {
  if (a === undefined || b === undefined) return a ?? b
  return a > b ? a : b
}

export function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}

/** RFC 3339 text in UTC with nanoseconds, from ns since the epoch. */
export function instantText(ns: bigint): string {
  const perSecond = BigInt(NS_PER_SECOND)
  const seconds = new Date(Number(ns / perSecond) * 1000).toISOString().slice(0, 19)
  return `${seconds}.${String(ns % perSecond).padStart(9, '0')}Z`
}
