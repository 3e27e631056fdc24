// What a recording proves to be without loss. A span is a stretch of one feed's messages within one UTC date in which
// nothing is missing: consecutive sequence numbers of one subscription, or one connection's messages where the exchange
// numbers nothing. Spans that are proven to follow each other are one strand. A book is known from its snapshot in a
// strand to the strand's last message, and no further.

import { later } from '../../shared/utc-date.ts'

/** Where in the feed a message stood and when it came; `seq` is 0 where messages have no numbers. Times are ns. */
export interface FeedAnchor {
  readonly seq: number
  readonly recvTs: bigint
  /** Its event time. */
  readonly ts: bigint
  /** Nothing came for a good while before it. */
  readonly isAfterSilence: boolean
}

/** A message of a subscription. */
export type NumberedMessage = Pick<FeedAnchor, 'seq' | 'recvTs'>

/** From where to where a stretch of messages goes. */
export interface SpanExtent {
  readonly firstSeq: number
  readonly lastSeq: number
  /** Event times of the first and last message, whatever market they are about; never decreasing from span to span. */
  readonly firstTs: bigint
  readonly lastTs: bigint
  readonly firstRecvTs: bigint
  readonly lastRecvTs: bigint
}

/** A span's outline: all that is compared when spans are put together. */
export interface FeedSpan extends SpanExtent {
  /** The subscription that numbers the messages; null where nothing does. */
  readonly sid: number | null
  /** Whether `no` prices come on the yes leg, as its subscription said; null where the recording does not say. */
  readonly isTurned: boolean | null
  /** Its first message begins a connection: nothing precedes it. */
  readonly isBegun: boolean
  /** The connection is known to have ended after its last message. */
  readonly isEnded: boolean
  /** It holds some of the subscription's markets: numbers that are missing prove nothing, and the next one says little. */
  readonly isPartial?: true | undefined
  /** Some of its messages happened so long after their receipt, ns: the recorder's clock was behind by no less. */
  readonly behindNs?: bigint | undefined
  /** Some of its messages, ascending: those at its ends, beside silences, and some between. */
  readonly anchors: readonly FeedAnchor[]
}

/** A message of every so many is an anchor, and so are this many at either end of a span. */
const ANCHOR_STRIDE = 128
/** A silence whose ends are both anchors, ns. */
const ANCHOR_SILENCE_NS = 60_000_000_000n
/**
 * Numbered messages at either end of a span among which all regular anchors stay: a recording that begins there, or ends,
 * shares one of them. Elsewhere one in so many ns is enough, as a feed of 64 messages a second has them, or a busy day
 * would take gigabytes.
 */
const DENSE_MESSAGES = ANCHOR_STRIDE * ANCHOR_STRIDE
const THIN_NS = 2_000_000_000n
/** So many anchors are thinned out together. */
const THINNED_TOGETHER = 1_024

/** A collector between two messages, as plain data. */
export interface AnchorState {
  readonly kept: readonly FeedAnchor[]
  readonly newest: readonly FeedAnchor[]
  readonly count: number
  readonly last: FeedAnchor | undefined
}

/** Collects a span's anchors while its messages come. */
export class AnchorCollector {
  readonly #isNumbered: boolean
  readonly #kept: FeedAnchor[]
  /** The newest messages, a ring; those that fall out of it stay only where they are anchors. */
  readonly #newest: FeedAnchor[]
  #count: number
  #last: FeedAnchor | undefined
  /** So many of those kept have been thinned out. */
  #thinned = 0

  constructor(isNumbered: boolean, state?: AnchorState) {
    this.#isNumbered = isNumbered
    this.#kept = [...(state?.kept ?? [])]
    this.#newest = [...(state?.newest ?? [])]
    this.#count = state?.count ?? 0
    this.#last = state?.last
  }

  state(): AnchorState {
    return { kept: [...this.#kept], newest: [...this.#newest], count: this.#count, last: this.#last }
  }

  get isEmpty(): boolean {
    return this.#count === 0
  }

  add(seq: number, recvTs: bigint, ts: bigint): void {
    const last = this.#last
    // One instant is one place where nothing is numbered.
    if (!this.#isNumbered && last?.recvTs === recvTs) return
    const isAfterSilence = last !== undefined && recvTs - last.recvTs > ANCHOR_SILENCE_NS
    const anchor = { seq, recvTs, ts, isAfterSilence }
    if (isAfterSilence && this.#kept.at(-1) !== last) this.#kept.push(last)
    if (this.#count < ANCHOR_STRIDE || isAfterSilence || isStrideAnchor(this.#isNumbered, anchor)) {
      this.#kept.push(anchor)
    }
    // Most spans of a recording full of holes are short: until then all are kept anyway.
    if (this.#count === ANCHOR_STRIDE)
      this.#newest.splice(0, ANCHOR_STRIDE, ...this.#kept.slice(0, ANCHOR_STRIDE))
    if (this.#count >= ANCHOR_STRIDE) this.#newest[this.#count % ANCHOR_STRIDE] = anchor
    this.#count++
    this.#last = anchor
    if (this.#isNumbered && this.#kept.length >= this.#thinned + THINNED_TOGETHER) this.#thin(seq)
  }

  /** The anchors so far, ascending. */
  result(): FeedAnchor[] {
    const all = mergeAnchors([...this.#kept, ...this.#newest], this.#isNumbered)
    return this.#isNumbered ? thinned(all) : all
  }

  /** Thins out what is no longer near the end. */
  #thin(lastSeq: number): void {
    // The one before tells whether the next is the first of its time.
    const from = Math.max(0, this.#thinned - 1)
    const kept = thinned([this.#kept[0]!, ...this.#kept.splice(from)], lastSeq).slice(1)
    this.#kept.push(...kept)
    const dense = kept.findIndex(({ seq }) => seq > lastSeq - DENSE_MESSAGES)
    this.#thinned = from + (dense === -1 ? kept.length : dense)
  }
}

/**
 * Numbered anchors, ascending, without those that a fast feed has too many of. Which stay is told by the messages alone,
 * so that the parts of a span together give what the whole gives.
 */
function thinned(anchors: readonly FeedAnchor[], lastSeq = anchors.at(-1)?.seq ?? 0): FeedAnchor[] {
  const denseTo = (anchors[0]?.seq ?? 0) + DENSE_MESSAGES
  const denseFrom = lastSeq - DENSE_MESSAGES
  let before: bigint | undefined
  return anchors.filter((anchor, index) => {
    const { seq, recvTs } = anchor
    if (!isStrideAnchor(true, anchor)) return true
    const time = recvTs / THIN_NS
    const isFirst = time !== before
    before = time
    const isBesideSilence = anchor.isAfterSilence || anchors[index + 1]?.isAfterSilence === true
    return isFirst || seq < denseTo || seq > denseFrom || isBesideSilence
  })
}

/** Whether a message is an anchor wherever it stands in its span. */
export function isStrideAnchor(
  isNumbered: boolean,
  { seq, recvTs }: Pick<FeedAnchor, 'seq' | 'recvTs'>,
): boolean {
  return isNumbered ? seq % ANCHOR_STRIDE === 0 : (recvTs / 1_000n) % BigInt(ANCHOR_STRIDE) === 0n
}

/**
 * The anchors of a span made of several that overlap or follow each other (`spans` in feed order): those that it would
 * have if its messages had come at once.
 */
function joinAnchors(spans: readonly FeedSpan[]): readonly FeedAnchor[] {
  const [first] = spans
  if (first === undefined || spans.length === 1) return first?.anchors ?? []
  const isNumbered = first.sid !== null
  const all = mergeAnchors(
    spans.flatMap(({ anchors }) => anchors),
    isNumbered,
  ).map((anchor, index, list) => ({ ...anchor, isAfterSilence: isAfterSilence(list[index - 1], anchor) }))
  const kept = all.filter(
    (anchor, index) =>
      isStrideAnchor(isNumbered, anchor) ||
      anchor.isAfterSilence ||
      all[index + 1]?.isAfterSilence === true ||
      (isNumbered
        ? anchor.seq < all[0]!.seq + ANCHOR_STRIDE || anchor.seq > all.at(-1)!.seq - ANCHOR_STRIDE
        : index < ANCHOR_STRIDE || index >= all.length - ANCHOR_STRIDE),
  )
  return isNumbered ? thinned(kept) : kept

  // What stood at a span's head is only known now; what stood within it may have been filled by another span.
  function isAfterSilence(before: FeedAnchor | undefined, anchor: FeedAnchor): boolean {
    if (before === undefined || anchor.recvTs - before.recvTs <= ANCHOR_SILENCE_NS) return false
    return anchor.isAfterSilence || spans.some(({ anchors }) => anchors[0]?.recvTs === anchor.recvTs)
  }
}

/** In order, without repeats; where a numbered message came twice, the earlier receive time counts. */
function mergeAnchors(anchors: readonly FeedAnchor[], isNumbered: boolean): FeedAnchor[] {
  const all = anchors.toSorted(
    (a, b) => a.seq - b.seq || (a.recvTs < b.recvTs ? -1 : a.recvTs > b.recvTs ? 1 : 0),
  )
  return all.filter((anchor, index) => {
    const before = all[index - 1]
    return (
      before === undefined || before.seq !== anchor.seq || (!isNumbered && before.recvTs !== anchor.recvTs)
    )
  })
}

/** The span whose first message came first. */
function firstOf<Span extends FeedSpan>(spans: readonly Span[]): Span {
  const isBefore = (a: Span, b: Span): boolean =>
    a.sid === null ? a.firstRecvTs < b.firstRecvTs : a.firstSeq < b.firstSeq
  return spans.reduce((first, span) => (isBefore(span, first) ? span : first))
}

/** A span without whatever else its object holds. */
export function outlineOf(span: FeedSpan): FeedSpan {
  return {
    sid: span.sid,
    firstSeq: span.firstSeq,
    lastSeq: span.lastSeq,
    firstTs: span.firstTs,
    lastTs: span.lastTs,
    firstRecvTs: span.firstRecvTs,
    lastRecvTs: span.lastRecvTs,
    isTurned: span.isTurned,
    isBegun: span.isBegun,
    isEnded: span.isEnded,
    isPartial: span.isPartial,
    behindNs: span.behindNs,
    anchors: span.anchors,
  }
}

/** What several spans of one strand and date make together, but for how it began and ended. */
export function joinOutlines(
  spans: readonly FeedSpan[],
): Omit<FeedSpan, 'sid' | 'isTurned' | 'isBegun' | 'isEnded' | 'isPartial'> {
  return {
    firstSeq: Math.min(...spans.map(({ firstSeq }) => firstSeq)),
    lastSeq: Math.max(...spans.map(({ lastSeq }) => lastSeq)),
    firstTs: firstOf(spans).firstTs,
    lastTs: spans.map(({ lastTs }) => lastTs).reduce((a, b) => (a > b ? a : b)),
    firstRecvTs: spans.map(({ firstRecvTs }) => firstRecvTs).reduce((a, b) => (a < b ? a : b)),
    lastRecvTs: spans.map(({ lastRecvTs }) => lastRecvTs).reduce((a, b) => (a > b ? a : b)),
    behindNs: longestBehind(spans),
    anchors: joinAnchors(spans),
  }
}

/** By how much the recorder of the spans was behind, as far as their messages show, ns; undefined where none does. */
function longestBehind(spans: readonly Pick<FeedSpan, 'behindNs'>[]): bigint | undefined {
  return spans.reduce<bigint | undefined>(
    (longest, { behindNs }) => (behindNs === undefined ? longest : later(behindNs, longest)),
    undefined,
  )
}
