// Chooses the interval of the order-book request for a window: as fine as the screen can show, and no finer. For a window
// within one UTC hour, the request covers every second of that hour.

import { MS_PER_HOUR } from '../shared/utc-date.ts'
import type { TimeWindow } from './time-window.ts'

export interface BookRequest {
  /** Seconds between snapshots. */
  readonly interval: number
  /** Null: all hours of the date. */
  readonly hour: number | null
}

const HOUR_STEPS: readonly (readonly [shorterThanHours: number, interval: number])[] = [
  [2, 5],
  [6, 10],
]
const DAY_INTERVAL = 60

/**
 * @param dayMs the date's midnight UTC
 * @param window null for the whole day
 */
export function bookRequestFor(dayMs: number, window: TimeWindow | null): BookRequest {
  if (window === null) return { interval: DAY_INTERVAL, hour: null }
  const firstHour = Math.floor((window.fromMs - dayMs) / MS_PER_HOUR)
  const lastHour = Math.ceil((window.toMs - dayMs) / MS_PER_HOUR) - 1
  if (firstHour === lastHour) return { interval: 1, hour: firstHour }
  const hours = (window.toMs - window.fromMs) / MS_PER_HOUR
  const step = HOUR_STEPS.find(([shorterThanHours]) => hours <= shorterThanHours)
  return { interval: step?.[1] ?? DAY_INTERVAL, hour: null }
}
