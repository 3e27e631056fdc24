// Instants in requests: an RFC 3339 time with its zone, or a date, which stands for its first or its last millisecond.

import { MS_PER_DAY, utcDateStartMs } from '../../shared/utc-date.ts'

const RFC3339 =
  /^(\d{4}-\d{2}-\d{2})[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

/** Milliseconds since the epoch, or `undefined` for any other text. A date is the start of it, or with `isEnd` the end. */
export function requestInstantMs(text: string, isEnd: boolean): number | undefined {
  const dateMs = utcDateStartMs(text)
  if (dateMs !== undefined) return isEnd ? dateMs + MS_PER_DAY - 1 : dateMs
  const date = RFC3339.exec(text)?.[1]
  if (date === undefined || utcDateStartMs(date) === undefined) return undefined
  const ms = Date.parse(text.toUpperCase())
  return Number.isNaN(ms) ? undefined : ms
}
