// Spans as one series sees them: since when they speak of it, and of which markets.

import { MS_PER_DAY, NS_PER_DAY, earlier, later, utcDateOf } from '../../shared/utc-date.ts'
import { outlineOf } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import type { ReadSpan } from '../feed/read-span.ts'
import type { LooseSpan, Strand } from './strand-chain.ts'

/** A span of the recording, or of a date's file. */
export interface SeriesSpan extends LooseSpan {
  readonly date: string
  /** The key of the span that it follows, where the ledger knows it. */
  readonly previousKey?: string | undefined
  /** Markets of the series that it may speak of. */
  readonly ownIds: ReadonlySet<string>
  /** Those that it does speak of, once its records were read back. */
  spokenIds?: Set<string>
  /** Since when it speaks of the series; undefined when it does not. */
  fromTs: bigint | undefined
}

export const NO_MARKETS: ReadonlySet<string> = new Set()

/** Without messages of its own: the strand was only heard of. */
export function isSilent({ sid, firstSeq, lastSeq, anchors }: FeedSpan): boolean {
  return sid === null ? anchors.length === 0 : lastSeq < firstSeq
}

/** A strand through a date in which it said nothing. */
export function silentOutline(strand: Strand, spans: readonly SeriesSpan[], date: string) {
  const before = spans.filter((span) => span.date < date && !isSilent(span))
  const lastSeq = Math.max(strand.firstSeq - 1, ...before.map((span) => span.lastSeq))
  const recvTs = before.map(({ lastRecvTs }) => lastRecvTs).reduce(later, 0n)
  // Without the dates before, as the date's own file has it.
  const told = before.length > 0 ? undefined : spans.find((span) => span.date === date)
  return {
    firstSeq: strand.sid === null ? 0 : lastSeq + 1,
    lastSeq: strand.sid === null ? 0 : lastSeq,
    firstTs: dayOf(date).start,
    firstRecvTs: told?.firstRecvTs ?? recvTs,
    lastRecvTs: told?.lastRecvTs ?? recvTs,
    isBegun: false,
    anchors: [],
  }
}

/** All markets of a span that was read, of whatever series. */
export function marketIdsOf({ members }: ReadSpan): ReadonlySet<string> {
  return new Set([...members.values()].flatMap(({ ids }) => [...ids]))
}

/** The recording's spans as those of one series. */
export function looseSpans(spans: FeedSpans, series: string): SeriesSpan[] {
  const numbers = new Map([...spans.list.keys()].map((number, index) => [number, index]))
  return [...spans.list.values()].map((span) => ({
    ...outlineOf(span),
    name: span.name,
    previous: span.previous === undefined ? undefined : numbers.get(span.previous),
    isPreviousSure: span.isPreviousSure,
    connection: `${span.name} ${span.connection}`,
    marketIds: marketIdsOf(span),
    ownIds: span.members.get(series)?.ids ?? NO_MARKETS,
    end: span.end,
    beforeHole: span.beforeHole,
    afterHole: span.afterHole,
    date: dateOf(span.firstTs),
    fromTs: sinceOf(span, series),
  }))
}

// Markets of the span before count only where that is the same strand, and then by themselves.
function sinceOf({ members, ownFrom, isPreviousSure }: ReadSpan, series: string): bigint | undefined {
  return isPreviousSure ? members.get(series)?.fromTs : ownFrom.get(series)
}

/** The first and last date that a recording speaks of, if only to say that a connection had ended. */
export function datesOf({ list, endsBefore }: FeedSpans): [string | undefined, string | undefined] {
  const times = [...[...list.values()].map(({ firstTs }) => firstTs), ...endsBefore]
  const dates = times.map(dateOf).toSorted()
  return [dates[0], dates.at(-1)]
}

export function dateOf(ts: bigint): string {
  return utcDateOf(Number(ts / NS_PER_DAY) * MS_PER_DAY)
}

export function dayOf(date: string): { start: bigint; end: bigint } {
  const start = BigInt(Date.parse(`${date}T00:00:00Z`)) * 1_000_000n
  return { start, end: start + NS_PER_DAY - 1n }
}

/** A stretch of time, ns, both inclusive. */
export interface Covered {
  readonly from: bigint
  readonly to: bigint
}

/** From the first to the last that the stretches cover of the time from `start` to `end`; undefined when nothing. */
export function coveredBetween(
  stretches: Iterable<{ readonly fromTs: bigint; readonly lastTs: bigint }>,
  start: bigint,
  end: bigint,
): Covered | undefined {
  let covered: Covered | undefined
  for (const { fromTs, lastTs } of stretches) {
    if (fromTs > end || lastTs < start) continue
    const [from, to] = [later(fromTs, start), earlier(lastTs, end)]
    covered =
      covered === undefined ? { from, to } : { from: earlier(from, covered.from), to: later(to, covered.to) }
  }
  return covered
}
