// A report states only the day of the month, the hour and the minute. The month comes from a reference time: the receive time, or
// the archive's time.

import { MS_PER_DAY, MS_PER_HOUR } from '../../../shared/utc-date.ts'

/** Clocks differ and routine reports are sent a few minutes early; anything later belongs to an earlier month. */
const FUTURE_MS_MAX = MS_PER_HOUR

/**
 * The latest instant with that day, hour and minute (UTC) that is at most an hour after `referenceMs`, in milliseconds; `undefined`
 * if no calendar month around the reference has it.
 */
export function resolveReportTime(
  day: number,
  hour: number,
  minute: number,
  referenceMs: number,
): number | undefined {
  if (hour > 23 || minute > 59 || day < 1) return undefined
  const reference = new Date(referenceMs)
  // Two months back: a 31st received on 1 March is in January, since February has none.
  for (const monthOffset of [1, 0, -1, -2]) {
    const month = reference.getUTCMonth() + monthOffset
    const ms = Date.UTC(reference.getUTCFullYear(), month, day, hour, minute)
    const isRealDay = new Date(ms).getUTCDate() === day
    if (isRealDay && ms <= referenceMs + FUTURE_MS_MAX) return ms
  }
  return undefined
}

/**
 * The time of the peak wind: the latest hh:mm at or before the observation or, without an hour, the latest minute :mm. `undefined`
 * for an impossible time.
 */
export function resolvePeakTime(
  hour: number | undefined,
  minute: number,
  observedAtMs: number,
): number | undefined {
  if (minute > 59 || (hour !== undefined && hour > 23)) return undefined
  const observed = new Date(observedAtMs)
  const ms = new Date(observedAtMs).setUTCHours(hour ?? observed.getUTCHours(), minute, 0, 0)
  if (ms <= observedAtMs) return ms
  return ms - (hour === undefined ? MS_PER_HOUR : MS_PER_DAY)
}
