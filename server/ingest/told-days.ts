// What an archive's polls have told of each day, as digests in the source's state. Archives are asked for the same days
// again and again; a day whose reports are all as before was merged then, and is left alone wherever its rows are by now.
// Else every poll would bring rows back into the relational store that have moved to the lake.

import { createHash } from 'node:crypto'
import { groupedBy } from '../../shared/grouped-by.ts'
import type { Observation } from '../../shared/observation.ts'
import { utcDateOf } from '../../shared/utc-date.ts'
import type { CursorState } from '../storage/cursor-store.ts'

/** Digests of one source's reports of one station, by UTC date. */
export type ToldDays = Readonly<Record<string, string>>

const DIGEST_CHARACTERS = 16
/** Days that are remembered; a yearly file has as many. */
const TOLD_DAYS_MAX = 366

/** The rows of days that are not as they were, and the digests when those are written. */
export function changedDays(
  rows: readonly Observation[],
  told: ToldDays,
): { readonly rows: readonly Observation[]; readonly told: ToldDays } {
  const days = groupedBy(rows, ({ observed_at }) => utcDateOf(observed_at))
  const digests = new Map([...days].map(([date, day]) => [date, digestOf(day)]))
  return {
    rows: [...days].flatMap(([date, day]) => (told[date] === digests.get(date) ? [] : day)),
    told: newestDays({ ...told, ...Object.fromEntries(digests) }),
  }
}

export function readToldDays({ told }: CursorState): ToldDays {
  if (typeof told !== 'object' || told === null) return {}
  return Object.fromEntries(Object.entries(told).map(([date, digest]) => [date, String(digest)]))
}

function digestOf(day: readonly Observation[]): string {
  const texts = day.map((row) => JSON.stringify(row)).toSorted()
  return createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, DIGEST_CHARACTERS)
}

function newestDays(told: ToldDays): ToldDays {
  const newest = Object.entries(told).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(newest.slice(-TOLD_DAYS_MAX))
}
