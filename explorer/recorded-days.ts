// Finds the days that have recordings, and divides a month into the weeks of a calendar.

import { addDays } from '../shared/utc-date.ts'

export type DateSpan = readonly [first: string, last: string]

export interface RecordedSeries {
  readonly source: string
  readonly series: string
  readonly spans: readonly DateSpan[]
}

export function isRecorded(spans: readonly DateSpan[], date: string): boolean {
  return spans.some(([first, last]) => first <= date && date <= last)
}

/** The condition of each date that is not wholly available. If a date has rows of several conditions, the last row counts. */
export function worstConditions(
  rows: readonly { readonly date: string; readonly condition: string }[],
): ReadonlyMap<string, string> {
  const worst = new Map<string, string>()
  for (const { date, condition } of rows) if (condition !== 'available') worst.set(date, condition)
  return worst
}

/** The recorded day before (-1) or after (1) a date; undefined if there is none. */
export function recordedNeighbour(
  spans: readonly DateSpan[],
  date: string,
  direction: -1 | 1,
): string | undefined {
  if (direction === 1) {
    const span = spans.find(([, last]) => last > date)
    return span && (span[0] > date ? span[0] : addDays(date, 1))
  }
  const span = spans.findLast(([first]) => first < date)
  return span && (span[1] < date ? span[1] : addDays(date, -1))
}

/** The days between the spans, which have no recording. */
export function daysBetween(spans: readonly DateSpan[]): DateSpan[] {
  return spans.slice(1).map(([first], index) => {
    const [, before] = spans[index] ?? ['', first]
    return [addDays(before, 1), addDays(first, -1)]
  })
}

/** The month (such as `2026-07`) that is `months` after another. */
export function monthAfter(month: string, months: number): string {
  const date = new Date(`${month}-01T00:00:00Z`)
  date.setUTCMonth(date.getUTCMonth() + months)
  return date.toISOString().slice(0, 7)
}

/** The weeks of a month, Monday first; null for days of other months. */
export function monthWeeks(month: string): (string | null)[][] {
  const first = new Date(`${month}-01T00:00:00Z`)
  const days: (string | null)[] = Array.from({ length: (first.getUTCDay() + 6) % 7 }, () => null)
  for (let date = `${month}-01`; date.startsWith(month); date = addDays(date, 1)) days.push(date)
  while (days.length % 7 > 0) days.push(null)
  return Array.from({ length: days.length / 7 }, (_, week) => days.slice(7 * week, 7 * week + 7))
}
