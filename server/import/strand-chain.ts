// A strand while it is put together: the spans that it has so far, and what the next one may have in common with it.

import type { FeedAnchor, FeedSpan, NumberedMessage, SpanExtent } from '../lake/feed-strand.ts'
import type { RunEnd } from '../feed/read-span.ts'
import { goneOn, paceOfTail } from './message-pace.ts'
import type { MessagePace } from './message-pace.ts'
import type { HeardFeed } from './missed-changes.ts'

/** A span to be put together with others. */
export interface LooseSpan extends FeedSpan {
  readonly name: string
  /** The span before it in the same recording, as an index of the same list. */
  readonly previous: number | undefined
  /** Whether it is known to follow that one; else it does where nothing fits better. */
  readonly isPreviousSure: boolean
  /** Spans of one name were heard through one connection; undefined where that is not known. */
  readonly connection: string | undefined
  /** Markets that it speaks of, of all series; none where that is not known. */
  readonly marketIds: ReadonlySet<string>
  readonly end: RunEnd | undefined
  /** The recording's message before it, where numbers between are missing. */
  readonly beforeHole?: NumberedMessage | undefined
  /** The recording's message after it, where numbers between are missing. */
  readonly afterHole?: NumberedMessage | undefined
  /** It had begun before this midnight, ns, and went on. */
  readonly carriedAt?: bigint | undefined
}

/** Spans without loss between them, in feed order. */
export interface Strand extends SpanExtent {
  readonly spans: readonly number[]
  readonly sid: number | null
  /** Until then it was heard of: by its own last message, or by others of its connection. */
  readonly lastTs: bigint
  readonly isTurned: boolean | null
  /** Its recordings hold some of the subscription's markets. */
  readonly isPartial: true | undefined
  readonly isEnded: boolean
  /** Why it ended, where that was seen. */
  readonly end: RunEnd | undefined
  /** Strands of one number were heard through one connection. */
  readonly connection: number
}

/** Spans that others follow. */
export interface Followed {
  readonly sure: ReadonlySet<number>
  readonly likely: ReadonlySet<number>
}

export class Chain implements Strand, HeardFeed {
  readonly spans: number[] = []
  readonly markets = new Set<string>()
  readonly connections = new Set<string>()
  /** Connections that seemed to end and went on. */
  readonly wentOn = new Set<string>()
  lastConnection: string | undefined
  /** Those that end where it does. */
  readonly lastSpans = new Set<number>()
  connection = 0
  readonly anchors = new Map<string, FeedAnchor>()
  /** Its last message. */
  last: FeedAnchor | undefined
  readonly sid: number | null
  readonly firstSeq: number
  readonly firstTs: bigint
  readonly firstRecvTs: bigint
  lastSeq: number
  lastTs: bigint
  lastRecvTs: bigint
  /** The latest time of its own messages; 0 where none is known. */
  #ownTs = 0n
  silenceNs = 0n
  pace: MessagePace = { lagNs: undefined, beats: [] }
  isTurned: boolean | null = null
  readonly isPartial: true | undefined
  carriedAt: bigint | undefined
  /** As its first span has it. */
  readonly beforeHole: NumberedMessage | undefined
  afterHole: NumberedMessage | undefined
  isEnded = false
  /** One recording holds its last span and what follows it: nothing else goes on with it. */
  isContinued = false
  /** As it seems. */
  isExpected = false
  /** Numbers that follow it are missing, so that what its connection says later proves nothing of it. */
  isCut = false
  end: RunEnd | undefined

  constructor(span: LooseSpan) {
    this.sid = span.sid
    this.isPartial = span.isPartial
    this.firstSeq = span.firstSeq
    this.firstTs = span.firstTs
    this.firstRecvTs = span.firstRecvTs
    this.lastSeq = span.lastSeq
    this.lastTs = span.lastTs
    this.lastRecvTs = span.lastRecvTs
    this.beforeHole = span.beforeHole
  }

  /** Its next numbers are missing: they may have come right behind its own last message. */
  endAtHole(): void {
    if (this.isEnded || (this.end !== undefined && this.end !== 'end of file')) return
    this.isCut = true
    if (this.#ownTs > 0n && this.#ownTs < this.lastTs) this.lastTs = this.#ownTs
  }

  add(index: number, span: LooseSpan, { sure, likely }: Followed): void {
    this.spans.push(index)
    for (const id of span.marketIds) this.markets.add(id)
    if (span.connection !== undefined) this.connections.add(span.connection)
    for (const anchor of span.anchors) {
      this.anchors.set(keyOf(this.sid, anchor), anchor)
      if (anchor.ts > this.#ownTs) this.#ownTs = anchor.ts
    }
    const isLast = this.sid === null ? span.lastRecvTs >= this.lastRecvTs : span.lastSeq >= this.lastSeq
    if (isLast) {
      if (this.end === 'new connection' && this.lastConnection !== undefined)
        this.wentOn.add(this.lastConnection)
      this.lastConnection = span.connection
      const isSameEnd =
        this.sid === null ? span.lastRecvTs === this.lastRecvTs : span.lastSeq === this.lastSeq
      this.isEnded = span.isEnded || (this.isEnded && isSameEnd)
      this.end = span.end
      this.lastSeq = span.lastSeq
      this.last = span.anchors.at(-1) ?? this.last
      if (!isSameEnd) this.lastSpans.clear()
      if (!isSameEnd) this.afterHole = undefined
      this.afterHole ??= span.afterHole
      this.lastSpans.add(index)
      if (span.previous !== undefined) this.lastSpans.delete(span.previous)
      this.isContinued = [...this.lastSpans].some((last) => sure.has(last))
      this.isExpected = [...this.lastSpans].some((last) => likely.has(last))
      if (span.sid === null) this.pace = goneOn(this.pace, paceOfTail(span.anchors))
    }
    if (span.lastTs > this.lastTs) this.lastTs = span.lastTs
    if (span.lastRecvTs > this.lastRecvTs) this.lastRecvTs = span.lastRecvTs
    this.isTurned ??= span.isTurned
    this.carriedAt ??= span.carriedAt
    this.silenceNs = longest(this.silenceNs, longestSilence(span.anchors))
  }
}

/** Chains by what the next span may have in common with them. */
export class ChainIndex {
  readonly #byAnchor = new Map<string, Chain[]>()
  readonly #byNext = new Map<string, Set<Chain>>()
  readonly #plain = new Set<Chain>()
  readonly all = new Set<Chain>()

  add(chain: Chain, index: number, span: LooseSpan, followed: Followed): void {
    this.all.add(chain)
    this.#byNext.get(nextKey(chain))?.delete(chain)
    chain.add(index, span, followed)
    if (chain.sid === null) {
      this.#plain.add(chain)
    } else {
      const key = nextKey(chain)
      const waiting = this.#byNext.get(key)
      if (waiting === undefined) this.#byNext.set(key, new Set([chain]))
      else waiting.add(chain)
    }
    for (const anchor of span.anchors) {
      const key = anchorKey(span.sid, anchor)
      const list = this.#byAnchor.get(key)
      if (list === undefined) this.#byAnchor.set(key, [chain])
      else if (!list.includes(chain)) list.push(chain)
    }
  }

  /** Chains that hold a message of the span. */
  *sharing(span: LooseSpan): Iterable<Chain> {
    const seen = new Set<Chain>()
    for (const anchor of span.anchors) {
      for (const chain of this.#byAnchor.get(anchorKey(span.sid, anchor)) ?? []) {
        if (seen.has(chain)) continue
        seen.add(chain)
        yield chain
      }
    }
  }

  /** Chains that the span may go on with. */
  before(span: LooseSpan): Iterable<Chain> {
    return span.sid === null ? this.#plain : (this.#byNext.get(`${span.sid}:${span.firstSeq}`) ?? [])
  }
}

function nextKey({ sid, lastSeq }: Chain): string {
  return `${sid}:${lastSeq + 1}`
}

function anchorKey(sid: number | null, { seq, recvTs }: FeedAnchor): string {
  return sid === null ? `${recvTs}` : `${sid}:${seq}:${recvTs}`
}

export function longestSilence(anchors: readonly FeedAnchor[]): bigint {
  let silenceNs = 0n
  for (const [index, anchor] of anchors.entries()) {
    const before = anchors[index - 1]
    if (before !== undefined && anchor.isAfterSilence)
      silenceNs = longest(silenceNs, anchor.recvTs - before.recvTs)
  }
  return silenceNs
}

export function longest(a: bigint, b: bigint): bigint {
  return a > b ? a : b
}

/** What makes a message the same one within a strand. */
export function keyOf(sid: number | null, { seq, recvTs }: FeedAnchor): string {
  return sid === null ? String(recvTs) : String(seq)
}
