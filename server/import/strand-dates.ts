// What a series' strands are in each date: since when they speak of it, until when they are heard of, and what a date's
// file says of them.

import { addDays, earlier, later } from '../../shared/utc-date.ts'
import { joinOutlines } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { StatedStrand } from '../lake/lob-evidence.ts'
import { coveredBetween, dateOf, dayOf, isSilent, silentOutline } from './series-spans.ts'
import type { Covered, SeriesSpan } from './series-spans.ts'
import type { Strand } from './strand-chain.ts'

export class StrandDates {
  readonly #spans: readonly SeriesSpan[]
  readonly #strands: readonly Strand[]
  // Both hold until a date is loaded and tells more of when strands begin.
  readonly #coverage = new Map<string, Covered | undefined>()
  readonly #starts = new Map<number, bigint | undefined>()

  /** `strands` are made of `spans`, whose `fromTs` may change: then `forget` is due. */
  constructor(spans: readonly SeriesSpan[], strands: readonly Strand[]) {
    this.#spans = spans
    this.#strands = strands
  }

  /** Spans have changed. */
  forget(): void {
    this.#coverage.clear()
    this.#starts.clear()
  }

  /** Since when a strand speaks of the series; undefined when it does not. */
  fromTs(strand: number): bigint | undefined {
    if (!this.#starts.has(strand)) this.#starts.set(strand, this.#startOf(this.#strands[strand]!))
    return this.#starts.get(strand)
  }

  /** What the strands cover of a date; undefined when nothing is. */
  coverageOf(date: string): Covered | undefined {
    if (!this.#coverage.has(date)) this.#coverage.set(date, this.#covered(date))
    return this.#coverage.get(date)
  }

  /** The outlines of a date's strands: first those of `used` in their order, then what else is alive then. */
  outlinesOf(date: string, used: readonly number[]): (StatedStrand & FeedSpan)[] {
    const isUsed = new Set(used)
    const others = [...this.#aliveIn(date)].filter((number) => !isUsed.has(number))
    return [...used, ...others].map((number) => this.#outline(number, date))
  }

  /** The series' markets that a strand may speak of. */
  marketsOf(strand: Strand): Set<string> {
    return new Set(strand.spans.flatMap((span) => [...this.#spans[span]!.ownIds]))
  }

  /** Dates in which the first `read` spans speak of the series, or let a strand begin earlier or go on longer. */
  touchedBy(read: number): Set<string> {
    const dates = new Set<string>()
    for (const [number, strand] of this.#strands.entries()) {
      const spans = strand.spans.map((span) => this.#spans[span]!)
      const own = new Set(strand.spans.filter((span) => span < read).map((span) => this.#spans[span]!.date))
      if (this.fromTs(number) !== undefined) for (const date of own) dates.add(date)
      for (const [place, { date, fromTs }] of spans.entries()) {
        const isNext = own.has(addDays(date, -1)) || own.has(addDays(date, 1))
        if (strand.spans[place]! >= read && fromTs !== undefined && isNext) dates.add(date)
      }
    }
    return dates
  }

  #startOf(strand: Strand): bigint | undefined {
    let from: bigint | undefined
    const seen = new Set<string>()
    for (const number of strand.spans) {
      const { fromTs, ownIds, spokenIds = ownIds } = this.#spans[number]!
      // Only the first that it says of a market counts: what follows may have an earlier time.
      const isNew = [...spokenIds].some((id) => !seen.has(id))
      for (const id of spokenIds) seen.add(id)
      if (isNew && fromTs !== undefined && (from === undefined || fromTs < from)) from = fromTs
    }
    return from
  }

  /** Until when a strand was heard of in a date, and whether it ended then. */
  lastOf(number: number, date: string): Pick<FeedSpan, 'lastTs' | 'isEnded'> {
    const strand = this.#strands[number]!
    return {
      // One that went on after midnight was listened to until then, whatever its last message of the date was.
      lastTs: earlier(strand.lastTs, dayOf(date).end),
      isEnded: strand.isEnded && dateOf(strand.lastTs) === date,
    }
  }

  *#aliveIn(date: string): Iterable<number> {
    const { start, end } = dayOf(date)
    for (const [number, { lastTs }] of this.#strands.entries()) {
      const fromTs = this.fromTs(number)
      if (fromTs !== undefined && fromTs <= end && lastTs >= start) yield number
    }
  }

  #covered(date: string): Covered | undefined {
    const { start, end } = dayOf(date)
    const alive = [...this.#aliveIn(date)]
    const stretches = alive.map((number) => {
      return { fromTs: this.fromTs(number)!, lastTs: this.#strands[number]!.lastTs }
    })
    return coveredBetween(stretches, start, end)
  }

  #outline(number: number, date: string): StatedStrand & FeedSpan {
    const strand = this.#strands[number]!
    const spans = strand.spans.map((span) => this.#spans[span]!)
    const own = spans.filter((span) => span.date === date && !isSilent(span))
    const { start } = dayOf(date)
    const fromTs = this.fromTs(number) ?? strand.firstTs
    const { sid, isTurned, isPartial } = strand
    const common = { sid, isTurned, isPartial, fromTs: later(fromTs, start) }
    const last = this.lastOf(number, date)
    if (own.length === 0) return { ...common, ...silentOutline(strand, spans, date), ...last }
    return {
      ...common,
      ...joinOutlines(own),
      ...last,
      isBegun: own.includes(spans[0]!) && spans[0]!.isBegun,
    }
  }
}
