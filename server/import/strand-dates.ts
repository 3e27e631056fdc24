// What a series' strands are in each date: since when they speak of it, until when they are heard of, and what a date's
// file says of them.

import { addDays, earlier, later } from '../../shared/utc-date.ts'
import { joinOutlines } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import { isSnapshotLate } from '../lake/record-order.ts'
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
  /** By connection and date. */
  readonly #behindNs = new Map<string, bigint>()

  /** `strands` are made of `spans`, whose `fromTs` may change: then `forget` is due. */
  constructor(spans: readonly SeriesSpan[], strands: readonly Strand[]) {
    this.#spans = spans
    this.#strands = strands
    for (const { connection, spans: numbers } of strands) {
      for (const { date, behindNs } of numbers.map((number) => spans[number]!)) {
        if (behindNs === undefined) continue
        const key = `${connection} ${date}`
        this.#behindNs.set(key, later(behindNs, this.#behindNs.get(key)))
      }
    }
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
    const behind = this.#showingBehind(read)
    for (const [number, strand] of this.#strands.entries()) {
      const spans = strand.spans.map((span) => this.#spans[span]!)
      const own = new Set(strand.spans.filter((span) => span < read).map((span) => this.#spans[span]!.date))
      if (this.fromTs(number) !== undefined) for (const date of own) dates.add(date)
      for (const date of this.#clockDates(strand, behind)) dates.add(date)
      for (const [place, { date, fromTs }] of spans.entries()) {
        const isNext = own.has(addDays(date, -1)) || own.has(addDays(date, 1))
        if (strand.spans[place]! >= read && fromTs !== undefined && isNext) dates.add(date)
      }
    }
    return dates
  }

  /** Connections of which one of the first `read` spans shows that their clock was behind, with the date. */
  #showingBehind(read: number): Set<string> {
    const keys = this.#strands.flatMap(({ connection, spans }) =>
      spans
        .filter((number) => number < read && this.#spans[number]!.behindNs !== undefined)
        .map((number) => `${connection} ${this.#spans[number]!.date}`),
    )
    return new Set(keys)
  }

  /** A strand's dates in which its snapshots may stand at other times now. */
  *#clockDates({ connection, spans }: Strand, behind: ReadonlySet<string>): Iterable<string> {
    if (behind.size === 0) return
    for (const { date, fromTs } of spans.map((number) => this.#spans[number]!)) {
      const isShown = [date, addDays(date, 1)].some((day) => behind.has(`${connection} ${day}`))
      if (fromTs !== undefined && isShown) yield date
    }
  }

  #startOf(strand: Strand): bigint | undefined {
    let from: bigint | undefined
    const seen = new Set<string>()
    for (const number of strand.spans) {
      const { fromTs, ownIds, spokenIds = ownIds } = this.#spans[number]!
      // Only the first that it says of a market counts: what follows may have an earlier time.
      const isNew = [...spokenIds].some((id) => !seen.has(id))
      for (const id of spokenIds) seen.add(id)
      if (fromTs === undefined) continue
      const isLate = strand.sid !== null && from !== undefined && isSnapshotLate(from, fromTs)
      if (isLate || (isNew && (from === undefined || fromTs < from))) from = fromTs
    }
    return from
  }

  /**
   * By how much the clock of a strand's recorder was behind in a date, ns, as its connection shows then, or on the day
   * after: it may have begun shortly before midnight.
   */
  behindNs(number: number, date: string): bigint {
    const { connection } = this.#strands[number]!
    const [own = 0n, next = 0n] = [date, addDays(date, 1)].map((day) =>
      this.#behindNs.get(`${connection} ${day}`),
    )
    return later(own, next)
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
