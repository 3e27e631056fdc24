// The spans of time for which a plot has no data: no row, or a row whose book is unknown.

import type { TimeWindow } from './time-window.ts'

/**
 * @param times of the rows, ms, ascending
 * @param isKnown whether the row at an index has a known book
 * @param tickMs from one row to the next
 * @param domain the requested time
 */
export function gapSpans(
  times: readonly number[],
  isKnown: (index: number) => boolean,
  tickMs: number,
  domain: TimeWindow,
): TimeWindow[] {
  const spans: TimeWindow[] = []
  let covered = domain.fromMs
  for (const [index, ms] of times.entries()) {
    if (!isKnown(index)) continue
    if (ms > covered) spans.push({ fromMs: covered, toMs: ms })
    covered = Math.max(covered, ms + tickMs)
  }
  if (covered < domain.toMs) spans.push({ fromMs: covered, toMs: domain.toMs })
  return spans
}
