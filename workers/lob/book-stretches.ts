// Divides a market's date into stretches: when its book is known, and why it is not known otherwise.

import type { GapCause } from '../../shared/coverage.ts'
import type { MarketHours } from '../../shared/lob-hours.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { FileCoverage } from './file-coverage.ts'

export const DAY_NS = MS_PER_DAY * 1e6

/** Shorter unrecorded times do not count: recordings cut at midnight lose up to a second, and no row of an answer with it. */
export const UNRECORDED_NS_MIN = 1e9

/** Nanoseconds after midnight, `to` exclusive. The stretches of a date cover it without holes. */
export interface BookStretch {
  readonly from: number
  readonly to: number
  readonly knowledge: 'known' | 'gap' | 'not_listed' | 'not_recorded' | 'closed'
  /** Why the book is not known; null if it is known, or should not be. */
  readonly cause: GapCause | null
}

/** The book at the end of the date before: known, unknown, or none if that date does not have the market. */
export type BookBefore = 'none' | 'known' | 'unknown'

export interface StretchOptions {
  readonly before: BookBefore
  /** When the market closes; Infinity if it does not, or if that is unknown. */
  readonly closes: number
}

/** The stretches of a date without a file. */
export function stretchesWithoutFile(closes: number): BookStretch[] {
  return stretchesOf({ from: DAY_NS, to: DAY_NS, isStated: true, tellsMidnight: true }, undefined, {
    before: 'none',
    closes,
  })
}

/** The stretches of a market in a file's date; undefined: the file does not have the market. */
export function stretchesOf(
  file: Pick<FileCoverage, 'from' | 'to' | 'isStated' | 'tellsMidnight'>,
  market: MarketHours | undefined,
  { before, closes }: StretchOptions,
): BookStretch[] {
  const isCarried = !file.tellsMidnight && before === 'known' && market !== undefined
  const recordedFrom = isCarried && !file.isStated ? 0 : file.from
  const recordedTo = Math.min(file.to, DAY_NS)
  const changes = isCarried ? changesOfCarried(market, recordedFrom) : (market?.changes ?? [])
  const opens = Math.min(Math.max(closes, 0), DAY_NS)
  const stretches: (BookStretch & { to: number })[] = []
  let at = 0
  const add = (to: number, knowledge: BookStretch['knowledge'], cause: GapCause | null): void => {
    const end = knowledge === 'closed' ? to : Math.min(to, opens)
    if (end <= at) return
    const last = stretches.at(-1)
    if (last?.knowledge === knowledge && last.cause === cause) last.to = end
    else stretches.push({ from: at, to: end, knowledge, cause })
    at = end
  }
  const addRecorded = (to: number, knowledge: 'known' | 'gap' | 'not_listed', cause: GapCause | null): void =>
    add(Math.min(to, recordedTo), knowledge, cause)
  add(recordedFrom, 'not_recorded', 'not_recorded')
  const first = changes[0] ?? Infinity
  if (before === 'none' || market === undefined) addRecorded(first, 'not_listed', null)
  else addRecorded(first, 'gap', before === 'unknown' && recordedFrom <= 0 ? 'interrupted' : 'no_snapshot')
  for (let index = 1; index <= changes.length; index++) {
    const to = changes[index] ?? Infinity
    if (index % 2 === 0) addRecorded(to, 'known', null)
    else addRecorded(to, 'gap', index === 1 ? 'no_snapshot' : 'interrupted')
  }
  add(DAY_NS, 'not_recorded', 'not_recorded')
  add(DAY_NS, 'closed', null)
  return stretches
}

/** The changes of a book that is known from the start, also if its first row is later. */
export function changesOfCarried({ changes, lossBefore }: MarketHours, from: number): readonly number[] {
  return lossBefore === undefined
    ? [from, from, ...changes.slice(2)]
    : [from, from, lossBefore, ...changes.slice(1)]
}
