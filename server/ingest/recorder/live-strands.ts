// The strands of a recording that goes on: a run of the recorder's connection is a strand, and ends for good.

import { NS_PER_DAY } from '../../../shared/utc-date.ts'
import type { LobSource } from '../../../shared/lake-layout.ts'
import type { FeedSpans, ReadSpan } from '../../import/feed-spans.ts'
import { outlineOf } from '../../lake/feed-strand.ts'
import type { FeedSpan } from '../../lake/feed-strand.ts'
import type { StatedStrand } from '../../lake/lob-evidence.ts'
import type { StrandTable } from '../../lake/record-order.ts'

export class LiveStrands implements StrandTable {
  readonly isTold = false
  readonly #source: LobSource
  readonly #spans: FeedSpans

  constructor(source: LobSource, spans: FeedSpans) {
    this.#source = source
    this.#spans = spans
  }

  strandOf(span: number): number {
    return this.#spans.list.get(span)?.root ?? span
  }

  placeOf(span: number): number {
    return span
  }

  isNumbered(strand: number): boolean {
    return this.#spansOf(strand).some(({ sid }) => sid !== null)
  }

  isInverted(span: number): boolean {
    return this.#source === 'kalshi' && this.#spans.list.get(span)?.isTurned !== true
  }

  nameOf(span: number): string {
    return this.#spans.list.get(span)?.name ?? 'the recording'
  }

  /** The last time at which the series was listened to. */
  lastTsOf(series: string): bigint | undefined {
    let last: bigint | undefined
    for (const span of this.#spans.list.values()) {
      if (span.members.has(series) && (last === undefined || span.lastTs > last)) last = span.lastTs
    }
    return last
  }

  /** What is covered of the series in the date that begins at `dayStart`. */
  coverageOf(series: string, dayStart: bigint): { readonly from: bigint; readonly to: bigint } | undefined {
    const dayEnd = dayStart + NS_PER_DAY - 1n
    let covered: { from: bigint; to: bigint } | undefined
    for (const span of this.#spans.list.values()) {
      const fromTs = span.members.get(series)?.fromTs
      if (fromTs === undefined || fromTs > dayEnd || span.lastTs < dayStart) continue
      const from = fromTs > dayStart ? fromTs : dayStart
      const to = span.lastTs < dayEnd ? span.lastTs : dayEnd
      covered ??= { from, to }
      if (from < covered.from) covered.from = from
      if (to > covered.to) covered.to = to
    }
    return covered
  }

  /** The outlines of the date's strands: first those of `used`, then what else speaks of the series. */
  outlinesOf(
    series: string,
    dayStart: bigint,
    used: readonly number[],
  ): readonly (StatedStrand & FeedSpan)[] {
    const own = [...this.#spans.list.values()].filter(
      (span) => span.firstTs >= dayStart && span.firstTs < dayStart + NS_PER_DAY,
    )
    const others = own.filter((span) => span.members.has(series) && !used.includes(span.root))
    return [
      ...used.map((strand) => own.find(({ root }) => root === strand) ?? this.#spansOf(strand).at(-1)!),
      ...others,
    ].map((span) => {
      const fromTs = span.members.get(series)?.fromTs ?? span.firstTs
      return { ...outlineOf(span), fromTs: fromTs > dayStart ? fromTs : dayStart }
    })
  }

  #spansOf(strand: number): ReadSpan[] {
    return [...this.#spans.list.values()].filter(({ root }) => root === strand)
  }
}
