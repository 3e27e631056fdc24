// What the exchange's lists lack, look after look. Most of it is a fault that passes; but an event may be listed for ever
// without a market, and a settled market may be taken off the lists for good. What has been so for a week, on several days,
// while the lists held other markets, is told once more and taken as the exchange's word: it keeps nothing open.

import { MS_PER_DAY, utcDateOf } from '../../../shared/utc-date.ts'
import type { CursorState } from '../../storage/cursor-store.ts'

const LASTING_MS_MIN = 7 * MS_PER_DAY
/** Days on which a look must have found it so. */
const LASTING_DAYS_MIN = 3
/** Remembered of a series; those go first that were not looked for the longest. */
const GAPS_MAX = 1000

interface SeenGap {
  readonly firstMs: number
  readonly lastMs: number
  /** UTC days with a look that found it. */
  readonly days: number
}

/** By the ticker of the event without a market, or of the market that is not listed. */
export type SeenGaps = Readonly<Record<string, SeenGap>>

export function seenGapsOf({ gaps }: CursorState): SeenGaps {
  return typeof gaps === 'object' && gaps !== null ? (gaps as SeenGaps) : {}
}

/** After a look that found these `tickers` missing and those of `listed` not; others it was not about. */
export function seenAgain(
  before: SeenGaps,
  tickers: readonly string[],
  listed: ReadonlySet<string>,
  nowMs: number,
): SeenGaps {
  const after = new Map(Object.entries(before).filter(([ticker]) => !listed.has(ticker)))
  for (const ticker of tickers) {
    const seen = after.get(ticker) ?? { firstMs: nowMs, lastMs: nowMs, days: 1 }
    const isNewDay = utcDateOf(seen.lastMs) < utcDateOf(nowMs)
    after.set(ticker, { ...seen, lastMs: Math.max(seen.lastMs, nowMs), days: seen.days + (isNewDay ? 1 : 0) })
  }
  const latest = [...after].toSorted(([, a], [, b]) => b.lastMs - a.lastMs).slice(0, GAPS_MAX)
  return Object.fromEntries(latest)
}

export function isLasting(seen: SeenGaps, ticker: string): boolean {
  const gap = seen[ticker]
  return gap !== undefined && gap.days >= LASTING_DAYS_MIN && gap.lastMs - gap.firstMs >= LASTING_MS_MIN
}
