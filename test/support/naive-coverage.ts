// Counts from a date's events of one market, hour by hour in the simplest way: the reference for /api/v1/coverage and /api/v1/gaps,
// with which it shares no code.

export interface CountedEvent {
  readonly ts: bigint
  readonly recvTs: bigint
  readonly event: number
}

export interface NaiveHour {
  known: bigint
  gap: bigint
  gaps: number
  events: number
  snapshots: number
  firstBook: bigint | null
  readonly lags: bigint[]
}

export interface NaiveGap {
  readonly from: bigint
  readonly to: bigint
  readonly cause: 'interrupted' | 'no_snapshot'
}

const HOUR = 3_600_000_000_000n

/**
 * `events` of one market in replay order; the recording covers `from` to `to` (exclusive). `before`: whether the file of the date
 * before has the market, and whether its book was known at its end.
 */
export function naiveCoverage(
  events: readonly CountedEvent[],
  dayStart: bigint,
  { from, to }: { readonly from: bigint; readonly to: bigint },
  before: 'none' | 'known' | 'unknown' = 'none',
): { readonly hours: readonly NaiveHour[]; readonly gaps: readonly NaiveGap[]; readonly endsKnown: boolean } {
  const hours = Array.from({ length: 24 }, (): NaiveHour => ({
    known: 0n,
    gap: 0n,
    gaps: 0,
    events: 0,
    snapshots: 0,
    firstBook: null,
    lags: [],
  }))
  const gaps: NaiveGap[] = []
  let state: 'not listed' | 'known' | NaiveGap['cause'] = 'not listed'
  if (before !== 'none') state = before === 'unknown' && from === dayStart ? 'interrupted' : 'no_snapshot'
  let at = from
  const pass = (until: bigint): void => {
    if (until <= at) return
    if (state === 'interrupted' || state === 'no_snapshot') {
      const last = gaps.at(-1)
      if (last?.to === at && last.cause === state) gaps[gaps.length - 1] = { ...last, to: until }
      else {
        gaps.push({ from: at, to: until, cause: state })
        hours[Number((at - dayStart) / HOUR)]!.gaps++
      }
    }
    while (at < until) {
      const index = Number((at - dayStart) / HOUR)
      const end = dayStart + BigInt(index + 1) * HOUR
      const stop = end < until ? end : until
      const hour = hours[index]!
      if (state === 'known') {
        hour.known += stop - at
        hour.firstBook ??= at
      } else if (state !== 'not listed') hour.gap += stop - at
      at = stop
    }
  }
  for (const [index, { ts, recvTs, event }] of events.entries()) {
    // A book lost and known again at one instant was not lost.
    const isFoundAtOnce = events.slice(index + 1).some((later) => later.ts === ts && later.event === 0)
    if (event === 0) {
      pass(ts)
      state = 'known'
    } else if (event === 3) {
      if (state !== 'known' || !isFoundAtOnce) {
        pass(ts)
        if (state === 'known') state = 'interrupted'
      }
    } else pass(ts)
    if (index === 0 && event !== 0) state = 'no_snapshot'
    const isKeyframe = (ts - dayStart) % HOUR === 0n && (event === 0 || event === 1)
    if (isKeyframe) continue
    const hour = hours[Number((ts - dayStart) / HOUR)]!
    hour.events++
    if (event === 0) hour.snapshots++
    if (recvTs !== ts) hour.lags.push(recvTs - ts)
  }
  pass(to)
  return { hours, gaps, endsKnown: state === 'known' }
}

/** The lag in milliseconds that `share` of the sorted lags do not exceed. */
export function naivePercentileMs(lags: readonly bigint[], share: number): number | null {
  if (lags.length === 0) return null
  const sorted = lags.map((lag) => Number(lag) / 1e6).toSorted((a, b) => a - b)
  return sorted[Math.ceil(share * sorted.length) - 1]!
}
