// The strands of one series' recording that goes on: a run of the recorder's connection is a strand, and ends for good.
// Where the recording went on from a file (another recorder's, or an import's), that file's strands are before them.

import { MS_PER_HOUR, NS_PER_DAY, earlier, later, utcDateOf } from '../../shared/utc-date.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { exchangeOf } from '../exchanges/registry.ts'
import type { FeedSpans } from '../feed/feed-spans.ts'
import type { ReadSpan } from '../feed/read-span.ts'
import { NO_MARKETS, coveredBetween, dateOf, dayOf, isSilent, looseSpans } from '../import/series-spans.ts'
import type { Covered } from '../import/series-spans.ts'
import { assembleStrands } from '../import/strand-assembly.ts'
import type { LooseSpan } from '../import/strand-chain.ts'
import { joinOutlines, outlineOf } from '../lake/feed-strand.ts'
import type { FeedSpan } from '../lake/feed-strand.ts'
import type { StatedStrand } from '../lake/lob-evidence.ts'
import type { StrandTable } from '../lake/record-order.ts'

const HOURS_PER_DAY = 24

/** A strand as a file states it. */
type FileStrand = StatedStrand & FeedSpan

/** What the recording went on from, as plain data. */
export interface LiveStrandsState {
  /** Where the file's strands were read. */
  readonly name: string
  /** The file's strands; the first has the number −(their count), the last −1. */
  readonly spans: readonly FileStrand[]
  /** Strands of the file's spans and of those that the recorder had begun when it went on from it; all below zero. */
  readonly strands: readonly (readonly [span: number, strand: number])[]
}

/** A file that the recording goes on from. */
export interface LiveFile {
  readonly name: string
  readonly date: string
  readonly spans: readonly FileStrand[]
}

/** A strand ended: from `ts` on it says nothing. */
export interface StrandEnd {
  readonly span: number
  /** It went on after its date, which ends at `ts`: nothing of that is missing. */
  readonly wentOn: boolean
  readonly ts: bigint
  readonly recvTs: bigint
  readonly seq: number
}

export class LiveStrands implements StrandTable {
  readonly isTold = false
  readonly #hasNoLeg: boolean
  readonly #series: string
  readonly #own: FeedSpans
  #state: LiveStrandsState | undefined
  #strandBySpan: ReadonlyMap<number, number>

  constructor(source: LobSource, series: string, own: FeedSpans, state?: LiveStrandsState) {
    this.#hasNoLeg = exchangeOf(source).hasNoLeg
    this.#series = series
    this.#own = own
    this.#state = state
    this.#strandBySpan = new Map(state?.strands)
  }

  state(): LiveStrandsState | undefined {
    return this.#state
  }

  strandOf(span: number): number {
    const root = this.#own.list.get(span)?.root ?? span
    if (this.#state === undefined) return root
    return this.#strandBySpan.get(span) ?? this.#strandBySpan.get(root) ?? root
  }

  placeOf(span: number): number {
    return span
  }

  isNumbered(strand: number): boolean {
    // All spans of a strand are alike; most strands have the number of their first.
    const first = strand < 0 ? undefined : this.#own.list.get(strand)
    if (first !== undefined) return first.sid !== null
    return this.#spansOf(strand).some(({ span }) => span.sid !== null)
  }

  isInverted(span: number): boolean {
    const isTurned = span < 0 ? this.fileSpan(span).isTurned : this.#own.list.get(span)?.isTurned
    return this.#hasNoLeg && isTurned !== true
  }

  get hasBehind(): boolean {
    if (this.#state?.spans.some(({ behindNs }) => behindNs !== undefined) === true) return true
    for (const { behindNs } of this.#own.list.values()) if (behindNs !== undefined) return true
    return false
  }

  /** As an import tells it: by what the strand's connection shows in the hour's date, or on the day after. */
  behindIn(hour: number): (strand: number) => bigint {
    const dates = [utcDateOf(hour * MS_PER_HOUR), utcDateOf((hour + HOURS_PER_DAY) * MS_PER_HOUR)]
    const shown = new Map<string, bigint>()
    const connections = new Map<number, Set<string>>()
    for (const { number, span, connection } of this.#all()) {
      const strand = this.strandOf(number)
      // What a file tells, it tells of its strands.
      const name = connection ?? `strand ${strand}`
      const names = connections.get(strand)
      if (names === undefined) connections.set(strand, new Set([name]))
      else names.add(name)
      if (span.behindNs !== undefined && dates.includes(dateOf(span.firstTs)))
        shown.set(name, later(span.behindNs, shown.get(name)))
    }
    return (strand) =>
      [...(connections.get(strand) ?? [])].map((name) => shown.get(name) ?? 0n).reduce(later, 0n)
  }

  nameOf(span: number): string {
    return (span < 0 ? this.#state?.name : this.#own.list.get(span)?.name) ?? 'the recording'
  }

  /** The span of a number below zero. */
  fileSpan(span: number): FileStrand {
    return this.#state!.spans.at(span)!
  }

  /** The last time at which the series was listened to. */
  get lastTs(): bigint | undefined {
    let last: bigint | undefined
    for (const { lastTs } of this.#speaking()) if (last === undefined || lastTs > last) last = lastTs
    return last
  }

  /** By how much, ns, the file has heard of the series later than a connection of the recorder that goes on. */
  get behindFileNs(): bigint {
    const fileTs = (this.#state?.spans ?? []).map(({ lastTs }) => lastTs).reduce(later, 0n)
    // Only the latest span of a run says whether it has ended.
    const runs = new Map<number, ReadSpan>()
    for (const span of this.#own.list.values()) if (span.members.has(this.#series)) runs.set(span.root, span)
    const alive = [...runs.values()].filter(({ end }) => end === 'end of file')
    const ownTs = alive.map(({ lastTs }) => lastTs).reduce(later, 0n)
    return alive.length > 0 && ownTs < fileTs ? fileTs - ownTs : 0n
  }

  /** What is covered of the series in the date that begins at `dayStart`. */
  coverageOf(dayStart: bigint): Covered | undefined {
    return coveredBetween(this.#speaking(), dayStart, dayStart + NS_PER_DAY - 1n)
  }

  /** The outlines of the date's strands: first those of `used`, then what else speaks of the series. */
  outlinesOf(dayStart: bigint, used: readonly number[]): readonly FileStrand[] {
    const byStrand = new Map<number, NumberedSpan[]>(used.map((strand) => [strand, []]))
    const goingOn = new Set<number>()
    for (const entry of this.#all()) {
      const { number, span, fromTs } = entry
      const strand = this.strandOf(number)
      if (span.firstTs >= dayStart + NS_PER_DAY) goingOn.add(strand)
      if (span.firstTs < dayStart || span.firstTs >= dayStart + NS_PER_DAY) continue
      const list = byStrand.get(strand)
      if (list !== undefined) list.push(entry)
      else if (fromTs !== undefined) byStrand.set(strand, [entry])
    }
    const others = [...byStrand.keys()].slice(used.length).toSorted((a, b) => a - b)
    return [...used, ...others].map((strand) => {
      const own = byStrand.get(strand)!
      const outline = joined(own.length > 0 ? own : this.#spansOf(strand).slice(-1), dayStart)
      // One that went on after midnight was listened to until then.
      return goingOn.has(strand) ? { ...outline, lastTs: dayStart + NS_PER_DAY - 1n } : outline
    })
  }

  /**
   * Goes on from a file: its strands become spans, numbered from −(their count) on, and are put together with what the
   * recorder has heard. Strands get new numbers, in the order in which they began. `next` are those of the next date's
   * file. Returns what ended, and when: at the latest with the date.
   */
  goOnFrom({ name, date, spans }: LiveFile, next: readonly FileStrand[]): StrandEnd[] {
    const ownNumbers = [...this.#own.list.keys()]
    const numbers = [...ownNumbers, ...spans.map((_, index) => index - spans.length)]
    const own = looseSpans(this.#own, this.#series)
    const loose = [...own, ...[...spans, ...next].map((span) => looseSpan(name, span))]
    const strands = assembleStrands(loose)
    const isOfNext = (span: number): boolean => span >= numbers.length
    this.#state = {
      name,
      spans,
      strands: strands.flatMap((strand, index) =>
        strand.spans
          .filter((span) => !isOfNext(span))
          .map((span) => [numbers[span]!, index - strands.length] as const),
      ),
    }
    this.#strandBySpan = new Map(this.#state.strands)
    const { start, end } = dayOf(date)
    return strands.flatMap((strand) => {
      const known = strand.spans.filter((span) => !isOfNext(span))
      const isSpeaking = known.some((span) => span >= own.length || own[span]!.fromTs !== undefined)
      const parts = known.map((span) => loose[span]!)
      const latest = Math.max(...known.filter((span) => span < own.length).map((span) => numbers[span]!))
      const lastTs = parts.map((span) => span.lastTs).reduce(later, 0n)
      const wentOn = strand.spans.some(isOfNext) || lastTs >= end
      // A run that nothing has ended goes on, and one that ended in the next date has said so there.
      const isAlive = this.#own.list.get(latest)?.end === 'end of file' || lastTs > end
      if (!isSpeaking || isAlive || lastTs < start) return []
      return {
        span: numbers[known.at(-1)!]!,
        wentOn,
        ts: wentOn ? end : lastTs + 1n,
        recvTs: parts.map((span) => span.lastRecvTs).reduce(later, 0n),
        seq: Math.max(...parts.map((span) => span.lastSeq)),
      }
    })
  }

  /** What ended before `ts` is told no more; which strands go on is kept. */
  forgetBefore(ts: bigint): void {
    if (this.#state === undefined || this.#state.spans.some(({ lastTs }) => lastTs >= ts)) return
    this.#state = { ...this.#state, spans: [], strands: this.#state.strands.filter(([span]) => span >= 0) }
    this.#strandBySpan = new Map(this.#state.strands)
  }

  /** The file's spans, then the recorder's, with their numbers. */
  *#all(): Iterable<NumberedSpan> {
    const { spans } = this.#state ?? { spans: [] }
    for (const [index, span] of spans.entries())
      yield { number: index - spans.length, span, connection: undefined, fromTs: span.fromTs }
    for (const [number, span] of this.#own.list) {
      const connection = `${span.name} ${span.connection}`
      yield { number, span, connection, fromTs: span.members.get(this.#series)?.fromTs }
    }
  }

  /** Since and until when the series was heard of, by span. */
  *#speaking(): Iterable<{ readonly fromTs: bigint; readonly lastTs: bigint }> {
    yield* this.#state?.spans ?? []
    for (const { members, lastTs } of this.#own.list.values()) {
      const fromTs = members.get(this.#series)?.fromTs
      if (fromTs !== undefined) yield { fromTs, lastTs }
    }
  }

  #spansOf(strand: number): NumberedSpan[] {
    return [...this.#all()].filter(({ number }) => this.strandOf(number) === strand)
  }
}

interface NumberedSpan {
  readonly number: number
  readonly span: FeedSpan
  /** Through which the recorder heard it; undefined where a file tells it. */
  readonly connection: string | undefined
  /** Since when it speaks of the series; undefined when it does not. */
  readonly fromTs: bigint | undefined
}

function looseSpan(name: string, span: FileStrand): LooseSpan {
  const alone = { previous: undefined, isPreviousSure: true, connection: undefined }
  const unknown = { marketIds: NO_MARKETS, end: undefined }
  const carriedAt = span.fromTs % NS_PER_DAY === 0n ? span.fromTs : undefined
  return { ...outlineOf(span), name, carriedAt, ...alone, ...unknown }
}

/** A strand's outline in the date that begins at `dayStart`, from its spans in it. */
function joined(entries: readonly NumberedSpan[], dayStart: bigint): FileStrand {
  const from = entries.map(({ span, fromTs }) => fromTs ?? span.firstTs).reduce(earlier)
  const fromTs = from > dayStart ? from : dayStart
  const spans = entries.map(({ span }) => outlineOf(span))
  const told = spans.length > 1 ? spans.filter((span) => !isSilent(span)) : spans
  const parts = told.length > 0 ? told : spans.slice(-1)
  const [first] = parts as [FeedSpan]
  if (parts.length === 1) return { ...first, fromTs }
  const isTurned = parts.map((span) => span.isTurned).find((value) => value !== null) ?? null
  const { sid, isBegun } = first
  const isLast = ({ lastSeq, lastRecvTs }: FeedSpan): boolean =>
    sid === null ? lastRecvTs === whole.lastRecvTs : lastSeq === whole.lastSeq
  const whole = joinOutlines(parts)
  const isEnded = parts.some((span) => isLast(span) && span.isEnded)
  return { sid, isTurned, isBegun, isEnded, fromTs, ...whole }
}
