// A span of a recording while it is read: how far it has come, the markets that it speaks of, and why it ended.

import { AnchorCollector } from '../lake/feed-strand.ts'
import type { AnchorState, FeedAnchor, FeedSpan, NumberedMessage, SpanExtent } from '../lake/feed-strand.ts'
import { NS_PER_DAY, later } from '../../shared/utc-date.ts'

/** Why a run ended. */
export type RunEnd =
  | 'end of file'
  | 'sequence break'
  | 'new connection'
  | 'disconnect'
  | 'bad line'
  | 'silence of more than a day'

/** Before any number that a span may begin with. */
const NOTHING_SEQ = -1

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

/** Where a span stands in its run. */
interface SpanPlace {
  readonly facts: RunFacts
  readonly name: string
  readonly previous: number | undefined
  readonly isPreviousSure: boolean
  readonly root: number
}

/** A span as plain data. */
export interface SpanState extends SpanPlace, SpanExtent {
  readonly end: RunEnd
  readonly members: readonly (readonly [string, readonly string[], bigint])[]
  readonly hasMessages: boolean
  readonly anchors: AnchorState | undefined
  /** Older states do not say it. */
  readonly behindNs?: bigint | undefined
}

/** By series. */
type GrowingMembers = Map<string, { readonly ids: Set<string>; fromTs: bigint }>

export class GrowingSpan implements ReadSpan {
  readonly facts: RunFacts
  readonly name: string
  previous: number | undefined
  readonly isPreviousSure: boolean
  readonly root: number
  #members: GrowingMembers
  /** The members are those of the span before as well. */
  #sharesMembers = false
  // Only imports have such spans, and only the recorder puts them away: it is no part of the state.
  readonly ownFrom = new Map<string, bigint>()
  afterHole: NumberedMessage | undefined
  behindNs: bigint | undefined
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
    this.#members = new Map(
      state.members.map(([series, ids, fromTs]) => [series, { ids: new Set(ids), fromTs }]),
    )
    this.dayEnd = (state.firstTs / NS_PER_DAY + 1n) * NS_PER_DAY
    this.#hasMessages = state.hasMessages
    this.#ownTs = state.lastTs
    this.#anchors = new AnchorCollector(state.facts.sid !== null, state.anchors)
    this.behindNs = state.behindNs
  }

  /** A new span at `ts`; `before` is the span of the same run that it follows. */
  static begin(place: SpanPlace, ts: bigint, before: GrowingSpan | undefined): GrowingSpan {
    const lastSeq = before?.lastSeq ?? 0
    const startTs = (ts / NS_PER_DAY) * NS_PER_DAY
    // Until a message comes it holds none: it ends before it begins, at the number of the span before.
    const span = new GrowingSpan({
      ...place,
      firstSeq: place.facts.sid === null ? 0 : lastSeq + 1,
      lastSeq,
      firstTs: before === undefined || before.firstTs >= startTs ? ts : startTs,
      lastTs: ts,
      firstRecvTs: before?.lastRecvTs ?? 0n,
      lastRecvTs: before?.lastRecvTs ?? 0n,
      end: 'end of file',
      members: [],
      hasMessages: false,
      anchors: undefined,
      behindNs: undefined,
    })
    if (before !== undefined) {
      span.#members = before.#members
      span.#sharesMembers = true
    }
    return span
  }

  get sid(): number | null {
    return this.facts.sid
  }

  get members(): ReadonlyMap<string, SpanMembers> {
    return this.#members
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
    // What a lost line said is missed where no number tells, as if the connection had ended.
    return this.end === 'disconnect' || this.end === 'bad line'
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
      members: [...this.#members].map(([series, { ids, fromTs }]) => [series, [...ids], fromTs] as const),
      hasMessages: this.#hasMessages,
      anchors: this.#anchors.state(),
      behindNs: this.behindNs,
    }
  }

  /** Its members, to be changed. */
  ownMembers(): GrowingMembers {
    if (this.#sharesMembers) {
      this.#members = new Map(
        [...this.#members].map(([series, { ids, fromTs }]) => [series, { ids: new Set(ids), fromTs }]),
      )
      this.#sharesMembers = false
    }
    return this.#members
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

  /** A message happened so long after its receipt. */
  showBehind(ns: bigint): void {
    this.behindNs = later(ns, this.behindNs)
  }

  /** Whether nothing was said in it. */
  get isEmpty(): boolean {
    return !this.#hasMessages && this.#sharesMembers
  }

  /** It never was: numbers before all others, and no market. */
  becomeNothing(): void {
    this.previous = undefined
    this.#members = new Map()
    this.firstSeq = NOTHING_SEQ
    this.lastSeq = NOTHING_SEQ - 1
    this.lastTs = this.firstTs
  }

  /** What others of the connection have said after `ts` proves nothing of this subscription. */
  forgetHearing(ts: bigint): void {
    if (!this.#hasMessages || this.sid === null || this.lastTs <= ts) return
    this.lastTs = later(this.#ownTs, ts)
  }

  hear(ts: bigint, recvTs: bigint): void {
    if (ts > this.lastTs) this.lastTs = ts
    // Numbers say by themselves what follows; without them it matters until when the connection was heard of.
    if (this.sid === null && recvTs > this.lastRecvTs) this.lastRecvTs = recvTs
  }
}
