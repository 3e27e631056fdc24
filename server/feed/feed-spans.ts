// The spans of a recording while it is read (server/lake/feed-strand.ts). A run is a stretch of one file, or of the
// recorder's connection, in which nothing is missing; it is one span a UTC date.

import { AnchorCollector } from '../lake/feed-strand.ts'
import type { AnchorState, FeedAnchor, FeedSpan, NumberedMessage } from '../lake/feed-strand.ts'
import { NS_PER_DAY } from '../../shared/utc-date.ts'

/** Why a run ended. */
export type RunEnd =
  | 'end of file'
  | 'sequence break'
  | 'new connection'
  | 'disconnect'
  | 'bad line'
  | 'silence of more than a day'

/** Stretches without loss that one import puts together; each costs some kB. */
const RUNS_MAX = 20_000
/**
 * Numbers that go on after such a silence go on as a span of its own, ns: another connection may have begun meanwhile,
 * and its number have met by chance. Where nothing fits better they are one.
 */
const SILENCE_NS = 300_000_000_000n
/** Before any number that a span may begin with. */
const NOTHING_SEQ = -1
const TOO_MANY_SPANS =
  `more than ${RUNS_MAX} holes in the sequence numbers: this looks like parts of connections. Import all parts ` +
  'together in smaller steps, by time, or say --sequence per-market where other markets were left out on purpose'

/** A series' markets in a span, and since when it speaks of them. */
export interface SpanMembers {
  readonly ids: ReadonlySet<string>
  readonly fromTs: bigint
}

/** A span that grows. */
export interface ReadSpan extends FeedSpan {
  /** Where it was read, for messages. */
  readonly name: string
  /** The same run's span before it, and its first. */
  readonly previous: number | undefined
  /** Whether nothing else can stand between them. */
  readonly isPreviousSure: boolean
  readonly root: number
  readonly connection: number
  /** Markets that the run speaks of, by series. */
  readonly members: ReadonlyMap<string, SpanMembers>
  /** Where it may not follow the span before: since when it speaks of series itself. */
  readonly ownFrom: ReadonlyMap<string, bigint>
  readonly end: RunEnd
  /** The recording's message before it, where numbers between are missing. */
  readonly beforeHole: NumberedMessage | undefined
  /** The recording's message after it, where numbers between are missing. */
  readonly afterHole: NumberedMessage | undefined
}

/** What is known of a run when it begins. */
export interface RunFacts {
  readonly sid: number | null
  /** Runs of one number were heard through one connection of the file. */
  readonly connection: number
  /** Nothing precedes it: the connection, or the subscription, begins here. */
  readonly isBegun: boolean
  readonly isTurned: boolean | null
  /** The recording holds some of the subscription's markets. */
  readonly isPartial?: true | undefined
  /** The recording's message before it, where numbers between are missing. */
  readonly beforeHole?: NumberedMessage | undefined
}

/** A span as plain data. */
interface SpanState {
  readonly facts: RunFacts
  readonly name: string
  readonly previous: number | undefined
  readonly isPreviousSure: boolean
  readonly root: number
  readonly firstSeq: number
  readonly lastSeq: number
  readonly firstTs: bigint
  readonly lastTs: bigint
  readonly firstRecvTs: bigint
  readonly lastRecvTs: bigint
  readonly end: RunEnd
  readonly members: readonly (readonly [string, readonly string[], bigint])[]
  readonly hasMessages: boolean
  readonly anchors: AnchorState | undefined
}

/** By series. */
type GrowingMembers = Map<string, { readonly ids: Set<string>; fromTs: bigint }>

class GrowingSpan implements ReadSpan {
  readonly facts: RunFacts
  readonly name: string
  previous: number | undefined
  readonly isPreviousSure: boolean
  readonly root: number
  members: GrowingMembers
  /** The members are those of the span before as well. */
  sharesMembers = false
  // Only imports have such spans, and only the recorder puts them away: it is no part of the state.
  readonly ownFrom = new Map<string, bigint>()
  afterHole: NumberedMessage | undefined
  readonly dayEnd: bigint
  firstTs: bigint
  firstSeq: number
  lastSeq: number
  lastTs: bigint
  firstRecvTs: bigint
  lastRecvTs: bigint
  end: RunEnd
  #hasMessages: boolean
  /** Time of its latest own message. */
  #ownTs: bigint
  readonly #anchors: AnchorCollector

  constructor(state: SpanState) {
    this.facts = state.facts
    this.name = state.name
    this.previous = state.previous
    this.isPreviousSure = state.isPreviousSure
    this.root = state.root
    this.firstSeq = state.firstSeq
    this.lastSeq = state.lastSeq
    this.firstTs = state.firstTs
    this.lastTs = state.lastTs
    this.firstRecvTs = state.firstRecvTs
    this.lastRecvTs = state.lastRecvTs
    this.end = state.end
    this.members = new Map(
      state.members.map(([series, ids, fromTs]) => [series, { ids: new Set(ids), fromTs }]),
    )
    this.dayEnd = (state.firstTs / NS_PER_DAY + 1n) * NS_PER_DAY
    this.#hasMessages = state.hasMessages
    this.#ownTs = state.lastTs
    this.#anchors = new AnchorCollector(state.facts.sid !== null, state.anchors)
  }

  get sid(): number | null {
    return this.facts.sid
  }

  get connection(): number {
    return this.facts.connection
  }

  get beforeHole(): NumberedMessage | undefined {
    return this.previous === undefined ? this.facts.beforeHole : undefined
  }

  get isTurned(): boolean | null {
    return this.facts.isTurned
  }

  get isBegun(): boolean {
    // A subscription counts from 1: its number says more than the words around it.
    return this.sid === null ? this.previous === undefined && this.facts.isBegun : this.firstSeq === 1
  }

  get isPartial(): true | undefined {
    return this.facts.isPartial
  }

  get isEnded(): boolean {
    // What a lost line said is missed where nothing is numbered, as if the connection had ended.
    return this.end === 'disconnect' || (this.sid === null && this.end === 'bad line')
  }

  get anchors(): FeedAnchor[] {
    return this.#anchors.result()
  }

  state(): SpanState {
    return {
      facts: this.facts,
      name: this.name,
      previous: this.previous,
      isPreviousSure: this.isPreviousSure,
      root: this.root,
      firstSeq: this.firstSeq,
      lastSeq: this.lastSeq,
      firstTs: this.firstTs,
      lastTs: this.lastTs,
      firstRecvTs: this.firstRecvTs,
      lastRecvTs: this.lastRecvTs,
      end: this.end,
      members: [...this.members].map(([series, { ids, fromTs }]) => [series, [...ids], fromTs] as const),
      hasMessages: this.#hasMessages,
      anchors: this.#anchors.state(),
    }
  }

  /** Its members, to be changed. */
  ownMembers(): GrowingMembers {
    if (this.sharesMembers) {
      this.members = new Map(
        [...this.members].map(([series, { ids, fromTs }]) => [series, { ids: new Set(ids), fromTs }]),
      )
      this.sharesMembers = false
    }
    return this.members
  }

  take(seq: number, ts: bigint, recvTs: bigint, isOwnWord: boolean): void {
    if (!this.#hasMessages) {
      this.firstSeq = seq
      this.firstTs = ts
      this.firstRecvTs = recvTs
    }
    this.#hasMessages = true
    if (ts > this.#ownTs) this.#ownTs = ts
    this.lastSeq = seq
    if (!isOwnWord || this.#anchors.isEmpty) this.#anchors.add(seq, recvTs, ts)
    if (recvTs > this.lastRecvTs) this.lastRecvTs = recvTs
    this.hear(ts, recvTs)
  }

  /** Whether nothing was said in it. */
  get isEmpty(): boolean {
    return !this.#hasMessages && this.sharesMembers
  }

  /** It never was: numbers before all others, and no market. */
  becomeNothing(): void {
    this.previous = undefined
    this.members = new Map()
    this.firstSeq = NOTHING_SEQ
    this.lastSeq = NOTHING_SEQ - 1
    this.lastTs = this.firstTs
  }

  /** What others of the connection have said proves nothing of this subscription. */
  forgetHearing(): void {
    if (this.#hasMessages && this.sid !== null) this.lastTs = this.#ownTs
  }

  hear(ts: bigint, recvTs: bigint): void {
    if (ts > this.lastTs) this.lastTs = ts
    // Numbers say by themselves what follows; without them it matters until when the connection was heard of.
    if (this.sid === null && recvTs > this.lastRecvTs) this.lastRecvTs = recvTs
  }
}

/** All spans as plain data. */
export interface FeedSpansState {
  readonly next: number
  readonly spans: readonly (readonly [number, SpanState])[]
}

/** All spans that were read, numbered in the order in which they began. */
export class FeedSpans {
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

  /** Spans that ended before `ts` are needed no more. */
  forgetBefore(ts: bigint): void {
    for (const [number, { dayEnd, previous }] of this.#spans) {
      if (dayEnd > ts) continue
      this.#spans.delete(number)
      if (previous === undefined) this.#runs--
    }
  }

  /** For runs: the span, which they make grow. */
  at(number: number): GrowingSpan | undefined {
    return this.#spans.get(number)
  }

  /** For runs: whether what was heard is not in a file yet. */
  get mayTakeBack(): boolean {
    return this.#partsAtSilence
  }

  /** For runs: whether the span's next message may be another connection's. */
  isDoubtful({ sid, lastSeq, lastRecvTs }: FeedSpan, seq: number, recvTs: bigint): boolean {
    return this.#partsAtSilence && sid !== null && seq === lastSeq + 1 && recvTs - lastRecvTs > SILENCE_NS
  }

  /** For runs: a new span at `ts`, which follows `previous` of the same run. */
  open(
    facts: RunFacts,
    name: string,
    ts: bigint,
    previous: number | undefined,
    isPreviousSure = true,
  ): number {
    const before = previous === undefined ? undefined : this.#spans.get(previous)
    if (before === undefined && ++this.#runs > RUNS_MAX) throw new Error(TOO_MANY_SPANS)
    const number = this.#next++
    const lastSeq = before?.lastSeq ?? 0
    const startTs = (ts / NS_PER_DAY) * NS_PER_DAY
    // Until a message comes it holds none: it ends before it begins, at the number of the span before.
    const span = new GrowingSpan({
      facts,
      name,
      previous,
      isPreviousSure,
      root: before?.root ?? number,
      firstSeq: facts.sid === null ? 0 : lastSeq + 1,
      lastSeq,
      firstTs: before === undefined || before.firstTs >= startTs ? ts : startTs,
      lastTs: ts,
      firstRecvTs: before?.lastRecvTs ?? 0n,
      lastRecvTs: before?.lastRecvTs ?? 0n,
      end: 'end of file',
      members: [],
      hasMessages: false,
      anchors: undefined,
    })
    if (before !== undefined) {
      span.members = before.members
      span.sharesMembers = true
    }
    this.#spans.set(number, span)
    return number
  }
}

/** A run as plain data. */
export interface FeedRunState {
  readonly facts: RunFacts
  readonly name: string
  readonly number: number
  readonly firstSeq: number
  readonly lastTs: bigint
}

export class FeedRun {
  readonly #spans: FeedSpans
  readonly #facts: RunFacts
  readonly #name: string
  #number: number
  #firstSeq: number
  #lastTs: bigint

  constructor(spans: FeedSpans, state: FeedRunState) {
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
    // A market's later events may have earlier times, which do not count.
    if (this.has(series, id)) return
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
    if (this.#spans.mayTakeBack) this.#takeBackHearing()
    if (this.#span !== undefined) this.#span.afterHole = message
  }

  #takeBackHearing(): void {
    for (let span = this.#span; span?.isEmpty === true && span.previous !== undefined; span = this.#span) {
      const { previous } = span
      span.becomeNothing()
      this.#number = previous
    }
    this.#span?.forgetHearing()
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
