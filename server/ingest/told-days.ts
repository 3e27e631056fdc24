// Digests of the reports that an archive's polls delivered for each day, stored in the source's state. Archives are queried for the
// same days repeatedly. A day with unchanged reports has been merged before and is skipped, wherever its rows are now. Otherwise
// every poll would bring rows that have moved to the lake back into the relational store.

import { createHash } from 'node:crypto'
import { groupedBy } from '../../shared/grouped-by.ts'
import type { Observation } from '../../shared/observation.ts'
import { utcDateOf } from '../../shared/utc-date.ts'

/** Digests of one source's reports of one station, by UTC date. */
type ToldDays = Readonly<Record<string, string>>

export interface ToldState {
  readonly told: ToldDays
}

const DIGEST_CHARACTERS = 16
/** Days to remember; a yearly file has as many. */
const TOLD_DAYS_MAX = 366

/** The rows of changed days, and the digests to store with them. */
export function changedDays(
  rows: readonly Observation[],
  { told = {} }: Partial<ToldState>,
): { readonly rows: readonly Observation[]; readonly told: ToldDays } {
  const days = groupedBy(rows, ({ observed_at }) => utcDateOf(observed_at))
  const digests = new Map([...days].map(([date, day]) => [date, digestOf(day)]))
  return {
    rows: [...days].flatMap(([date, day]) => (told[date] === digests.get(date) ? [] : day)),
    told: newestDays({ ...told, ...Object.fromEntries(digests) }),
  }
}

function digestOf(day: readonly Observation[]): string {
  const texts = day.map((row) => JSON.stringify(row)).toSorted()
  return createHash('sha256').update(texts.join('\n')).digest('hex').slice(0, DIGEST_CHARACTERS)
}

function newestDays(told: ToldDays): ToldDays {
  const newest = Object.entries(told).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(newest.slice(-TOLD_DAYS_MAX))
}
