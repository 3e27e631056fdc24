// A run while it is read: a stretch of one file, or of the recorder's connection, in which nothing is missing. It goes
// from span to span, one a UTC date.

import { NS_PER_DAY, later } from '../../shared/utc-date.ts'
import type { FeedSpan, NumberedMessage } from '../lake/feed-strand.ts'
import { isSnapshotLate } from '../lake/record-order.ts'
import type { GrowingSpan, RunEnd, RunFacts } from './read-span.ts'

/** All spans that are read, as a run sees them. */
export interface RunSpans {
  /** The span, which the run makes grow. */
  at(number: number): GrowingSpan | undefined
  /** Whether what was heard is not in a file yet. */
  readonly mayTakeBack: boolean
  /** Whether the span's next message may be another connection's. */
  isDoubtful(span: FeedSpan, seq: number, recvTs: bigint): boolean
  /** The number of a new span at `ts`, which follows `previous` of the same run. */
  open(
    facts: RunFacts,
    name: string,
    ts: bigint,
    previous: number | undefined,
    isPreviousSure?: boolean,
  ): number
}

/**
 * Silence of a whole run after which its books are taken for unknown. Quiet markets are silent for hours; without a bound
 * one wrong time would fill the lake with keyframes up to it.
 */
export const SILENCE_NS_MAX = NS_PER_DAY

/** A run as plain data. */
export interface FeedRunState {
  readonly facts: RunFacts
  readonly name: string
  readonly number: number
  readonly firstSeq: number
  readonly lastTs: bigint
}

export class FeedRun {
  readonly #spans: RunSpans
  readonly #facts: RunFacts
  readonly #name: string
  #number: number
  #firstSeq: number
  #lastTs: bigint

  constructor(spans: RunSpans, state: FeedRunState) {
    this.#spans = spans
    this.#facts = state.facts
    this.#name = state.name
    this.#number = state.number
    this.#firstSeq = state.firstSeq
    this.#lastTs = state.lastTs
  }

  state(): FeedRunState {
    const [facts, name, number, firstSeq] = [this.#facts, this.#name, this.#number, this.#firstSeq]
    return { facts, name, number, firstSeq, lastTs: this.#lastTs }
  }

  get sid(): number | null {
    return this.#facts.sid
  }

  get connection(): number {
    return this.#facts.connection
  }

  get isBegun(): boolean {
    return this.#facts.isBegun
  }

  get firstSeq(): number {
    return this.#firstSeq
  }

  get lastSeq(): number {
    return this.#span?.lastSeq ?? 0
  }

  get lastTs(): bigint {
    return this.#lastTs
  }

  get lastRecvTs(): bigint {
    return this.#span?.lastRecvTs ?? 0n
  }

  /** The place right behind all that was said, for a message of the run whatever its clocks show. */
  behindAll<T extends { readonly ts: bigint; readonly recvTs: bigint }>(stamp: T): T {
    return { ...stamp, ts: later(stamp.ts, this.lastTs), recvTs: later(stamp.recvTs, this.lastRecvTs) }
  }

  /** The number of the span in which the latest message stands. */
  get number(): number {
    return this.#number
  }

  /**
   * Takes the next message. `seq` is 0 where there are no numbers. `isOwnWord`: the recorder itself says that it has
   * listened, as another may at the same instant, so that it does not tell whose messages these are.
   */
  take(seq: number, ts: bigint, recvTs: bigint, isOwnWord = false): void {
    if (this.#number === -1) this.#firstSeq = seq
    const span = this.#span
    this.#reach(ts, span !== undefined && this.#spans.isDoubtful(span, seq, recvTs))
    this.#span!.take(seq, ts, recvTs, isOwnWord)
    // Only numbers tell which messages stand before it.
    if (this.sid !== null && ts > recvTs) this.#span!.showBehind(ts - recvTs)
  }

  /** The connection was heard of: what is not said until then has not happened. */
  hear(ts: bigint, recvTs: bigint): void {
    if (this.#span === undefined) return
    this.#reach(ts, false)
    this.#span.hear(this.#lastTs, recvTs)
  }

  /** The run speaks of a market, at `ts`. */
  addMarket(series: string, id: string, ts: bigint): void {
    const { isPreviousSure, ownFrom } = this.#span!
    if (!isPreviousSure && !ownFrom.has(series)) ownFrom.set(series, ts)
    // A market's later events may have earlier times, which only count where they put its snapshot earlier.
    const fromTs = this.#span!.members.get(series)?.fromTs
    const isLate = this.sid !== null && this.#spans.mayTakeBack && isSnapshotLate(fromTs ?? ts, ts)
    if (this.has(series, id) && !isLate) return
    const members = this.#span!.ownMembers()
    const own = members.get(series)
    if (own === undefined) {
      members.set(series, { ids: new Set([id]), fromTs: ts })
      return
    }
    own.ids.add(id)
    if (ts < own.fromTs) own.fromTs = ts
  }

  /** It will speak of the market no more. */
  removeMarket(series: string, id: string): void {
    if (this.has(series, id)) this.#span!.ownMembers().get(series)!.ids.delete(id)
  }

  has(series: string, id: string): boolean {
    return this.#span?.members.get(series)?.ids.has(id) ?? false
  }

  /** Every market that it speaks of, with its series. */
  markets(): (readonly [series: string, id: string])[] {
    return [...(this.#span?.members ?? [])].flatMap(([series, { ids }]) =>
      [...ids].map((id) => [series, id] as const),
    )
  }

  /**
   * Its next numbers are missing; `message` came after them. They may have come right behind its own last message,
   * whatever else was heard of the connection meanwhile.
   */
  missUntil(message: NumberedMessage): void {
    this.forgetHearing(0n)
    if (this.#span !== undefined) this.#span.afterHole = message
  }

  /** What others of the connection have said after `ts` proves nothing of this run, where it is not in a file yet. */
  forgetHearing(ts: bigint): void {
    if (!this.#spans.mayTakeBack) return
    for (let span = this.#span; span?.isEmpty === true && span.firstTs > ts; span = this.#span) {
      const { previous } = span
      if (previous === undefined) break
      span.becomeNothing()
      this.#number = previous
    }
    this.#span?.forgetHearing(ts)
  }

  end(reason: RunEnd): void {
    if (this.#span !== undefined) this.#span.end = reason
  }

  get #span(): GrowingSpan | undefined {
    return this.#spans.at(this.#number)
  }

  /** Enters the span of what happens at `ts`. */
  #reach(ts: bigint, isDoubtful: boolean): void {
    if (ts > this.#lastTs) this.#lastTs = ts
    const span = this.#span
    if (span !== undefined && this.#lastTs < span.dayEnd && !isDoubtful) return
    const previous = span === undefined ? undefined : this.#number
    this.#number = this.#spans.open(this.#facts, this.#name, this.#lastTs, previous, !isDoubtful)
  }
}
