// Warnings that repeat with every poll: logged at once the first time, then once an hour with their count. A warning that has not
// come for an hour counts as new.

import { BoundedMap } from '../../shared/bounded-map.ts'
import type { Clock } from '../tasks/clock.ts'

const SUMMARY_MS = 60 * 60 * 1000
/** Different warnings to remember; beyond that, the one not seen for the longest time is forgotten, and counts as new. */
const WARNINGS_MAX = 1_000

interface Heard {
  toldAtMs: number
  heardAtMs: number
  /** Occurrences since the last log line. */
  count: number
}

/** How many occurrences of a warning to log now; null if it was logged less than an hour ago. The parts are its text. */
export type TimesToTell = (...parts: readonly (string | number | null)[]) => number | null

export function repeatedWarnings(clock: Pick<Clock, 'nowMs'>): TimesToTell {
  const known = new BoundedMap<Heard>(WARNINGS_MAX)
  return (...parts) => {
    const [key, nowMs] = [warningKey(...parts), clock.nowMs()]
    const heard = known.get(key)
    if (heard === undefined || nowMs - heard.heardAtMs >= SUMMARY_MS) {
      known.set(key, { toldAtMs: nowMs, heardAtMs: nowMs, count: 0 })
      return 1
    }
    const count = heard.count + 1
    const isDue = nowMs - heard.toldAtMs >= SUMMARY_MS
    const toldAtMs = isDue ? nowMs : heard.toldAtMs
    known.set(key, { toldAtMs, heardAtMs: nowMs, count: isDue ? 0 : count })
    return isDue ? count : null
  }
}

/** A warning's text without its variable parts (instants, waits, counts), but with its names. */
export function warningKey(...parts: readonly (string | number | null)[]): string {
  return parts
    .join(' ')
    .replaceAll(/\d{4}-\d{2}-\d{2}T[\d:.]+Z/g, 'instant')
    .replaceAll(/\b\d+ (?=(?:ms|s|min|minutes|hours|reports|of)\b)/g, '')
}
