// All spans of a recording while it is read (server/lake/feed-strand.ts), and the runs that make them grow.

import type { FeedSpan } from '../lake/feed-strand.ts'
import { FeedRun } from './feed-run.ts'
import type { FeedRunState, RunSpans } from './feed-run.ts'
import { GrowingSpan } from './read-span.ts'
import type { ReadSpan, RunFacts, SpanState } from './read-span.ts'

/** Stretches without loss that one import puts together; each costs some kB. */
const RUNS_MAX = 20_000
/** Those of a recorder in two days: ten connections that are refused again and again make half as many. */
const LIVE_RUNS_MAX = 100_000
/**
 * Numbers that go on after such a silence go on as a span of its own, ns: another connection may have begun meanwhile,
 * and its number have met by chance. Where nothing fits better they are one.
 */
const SILENCE_NS = 300_000_000_000n
const TOO_MANY_SPANS =
  `more than ${RUNS_MAX} holes in the sequence numbers: this looks like parts of connections. Import all parts ` +
  'together in smaller steps, by time, or say --sequence per-market where other markets were left out on purpose'

/** All spans as plain data. */
export interface FeedSpansState {
  readonly next: number
  readonly spans: readonly (readonly [number, SpanState])[]
}

/** All spans that were read, numbered in the order in which they began. */
export class FeedSpans implements RunSpans {
  readonly #spans: Map<number, GrowingSpan>
  #next: number
  #runs = 0
  readonly #partsAtSilence: boolean
  /** Receive times of words that a connection had ended before the file began. */
  readonly endsBefore: bigint[] = []

  /** `partsAtSilence`: numbers that go on after a long silence may be another connection's. */
  constructor({
    state,
    partsAtSilence,
  }: {
    readonly state?: FeedSpansState | undefined
    readonly partsAtSilence: boolean
  }) {
    this.#partsAtSilence = partsAtSilence
    this.#next = state?.next ?? 0
    this.#spans = new Map(state?.spans.map(([number, span]) => [number, new GrowingSpan(span)]))
    this.#runs = [...this.#spans.values()].filter(({ previous }) => previous === undefined).length
  }

  state(): FeedSpansState {
    return { next: this.#next, spans: [...this.#spans].map(([number, span]) => [number, span.state()]) }
  }

  /** The spans by number. */
  get list(): ReadonlyMap<number, ReadSpan> {
    return this.#spans
  }

  start(facts: RunFacts, name: string): FeedRun {
    return new FeedRun(this, { facts, name, number: -1, firstSeq: 0, lastTs: 0n })
  }

  /** A run that was put away. */
  resume(state: FeedRunState): FeedRun {
    return new FeedRun(this, state)
  }

  /** Whether no other run may begin. */
  get isFull(): boolean {
    return this.#runs >= this.#runsMax
  }

  get #runsMax(): number {
    return this.#partsAtSilence ? RUNS_MAX : LIVE_RUNS_MAX
  }

  /** Spans that ended before `ts` are needed no more. */
  forgetBefore(ts: bigint): void {
    for (const [number, { dayEnd, previous }] of this.#spans) {
      if (dayEnd > ts) continue
      this.#spans.delete(number)
      if (previous === undefined) this.#runs--
    }
  }

  // What runs ask.

  at(number: number): GrowingSpan | undefined {
    return this.#spans.get(number)
  }

  get mayTakeBack(): boolean {
    return this.#partsAtSilence
  }

  isDoubtful({ sid, lastSeq, lastRecvTs }: FeedSpan, seq: number, recvTs: bigint): boolean {
    return this.#partsAtSilence && sid !== null && seq === lastSeq + 1 && recvTs - lastRecvTs > SILENCE_NS
  }

  open(
    facts: RunFacts,
    name: string,
    ts: bigint,
    previous: number | undefined,
    isPreviousSure = true,
  ): number {
    const before = previous === undefined ? undefined : this.#spans.get(previous)
    if (before === undefined && ++this.#runs > this.#runsMax) throw new Error(`${name}: ${TOO_MANY_SPANS}`)
    const number = this.#next++
    const place = { facts, name, previous, isPreviousSure, root: before?.root ?? number }
    this.#spans.set(number, GrowingSpan.begin(place, ts, before))
    return number
  }
}
