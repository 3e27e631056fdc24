// Gaps of the exchange's lists that persist from look to look. Most gaps are temporary faults, but an event may be listed forever
// without a market, and a settled market may be removed for good. A gap that has lasted a week, on several days, while the lists
// held other markets, is reported once more and then accepted: it keeps no window incomplete.

import { MS_PER_DAY, utcDateOf } from '../../../shared/utc-date.ts'

const LASTING_MS_MIN = 7 * MS_PER_DAY
/** Days on which a look must have found the gap. */
const LASTING_DAYS_MIN = 3
/** Gaps remembered for a series; beyond that, those not seen for the longest time are dropped. */
const GAPS_MAX = 1000

interface SeenGap {
  readonly firstMs: number
  readonly lastMs: number
  /** UTC days with a look that found the gap. */
  readonly days: number
}

/** By the ticker of the event without a market, or of the market that is not listed. */
export type SeenGaps = Readonly<Record<string, SeenGap>>

/** The gaps after a look that found `tickers` missing and `listed` present. Other gaps stay as they are. */
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
