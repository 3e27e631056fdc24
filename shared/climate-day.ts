// The climate day: midnight to midnight in the station's local standard time, all year. The offset is fixed, so every day has
// 24 hours, and in summer it runs from 1 AM to 1 AM on local clocks. Only the offset is needed, no time zone.

import { addDays, MS_PER_DAY, MS_PER_HOUR, utcDateOf } from './utc-date.ts'

/** A span of instants in milliseconds since the epoch; `toMs` is exclusive. */
export interface ClimateDay {
  readonly fromMs: number
  readonly toMs: number
}

/** The instants of a climate date. `lstOffsetHours` is local standard time minus UTC, −5 for New York. */
export function climateDay(date: string, lstOffsetHours: number): ClimateDay {
  const fromMs = Date.parse(`${date}T00:00:00Z`) - lstOffsetHours * MS_PER_HOUR
  return { fromMs, toMs: fromMs + MS_PER_DAY }
}

/** The climate date that contains an instant. */
export function climateDateAt(instantMs: number, lstOffsetHours: number): string {
  return utcDateOf(instantMs + lstOffsetHours * MS_PER_HOUR)
}

/** The last climate date that has ended at an instant. */
export function lastClosedClimateDate(instantMs: number, lstOffsetHours: number): string {
  return addDays(climateDateAt(instantMs, lstOffsetHours), -1)
}
