// Puts spans together to strands by what is in them, whatever files they came from and in which order: the same
// messages, or the next number of the same subscription; without numbers the same receive times, or the same tokens
// heard of again within the connection's own silences. What is not proven stays apart.

import type { FeedAnchor, NumberedMessage } from '../lake/feed-strand.ts'
import { isStrideAnchor } from '../lake/feed-strand.ts'
import { ConnectionEnds } from './connection-ends.ts'
import { comparePaces, paceOfHead } from './message-pace.ts'
import type { MessagePace } from './message-pace.ts'
import { missesChange } from './missed-changes.ts'
import { endAtMissingNumbers } from './missing-numbers.ts'
import { Chain, ChainIndex, keyOf, longest, longestSilence } from './strand-chain.ts'
import type { LooseSpan, Strand } from './strand-chain.ts'

/** Two clocks of one machine that disagree by no more may still be one course of time. */
const DISORDER_NS_MAX = 2_000_000_000n
const PAUSE_NS_MAX = 86_400_000_000_000n
/** A connection without numbers is believed to go on through this silence, or one as long as it has shown before. */
const SILENCE_NS_MIN = 60_000_000_000n
const SILENCE_NS_MAX = 3_600_000_000_000n
/** Of several that may go on, one heard of this much later than another is the likelier one: heartbeats come every 10 s. */
const HEARTBEAT_NS = 12_000_000_000n

/** Strands in the order in which they began. */
export function assembleStrands(spans: readonly LooseSpan[], ends = ConnectionEnds.NONE): Strand[] {
  const order = [...spans.keys()].toSorted((a, b) => compareSpans(spans[a]!, spans[b]!) || a - b)
  const followed = { sure: followedBy(spans, true), likely: followedBy(spans, false) }
  const chains: Chain[] = []
  const chainOf = new Map<number, Chain>()
  const index = new ChainIndex()
  for (const number of order) {
    const span = spans[number]!
    let chain = span.previous === undefined || !span.isPreviousSure ? undefined : chainOf.get(span.previous)
    chain ??= sameFeed(span, index) ?? goingOn(span, index, ends)
    if (chain === undefined) chains.push((chain = new Chain(span)))
    index.add(chain, number, span, followed)
    chainOf.set(number, chain)
  }
  ends.endChains(chains)
  endAtMissingNumbers(chains)
  hearThroughConnections(chains)
  return chains.toSorted(compareChains)
}

function followedBy(spans: readonly LooseSpan[], isSure: boolean): Set<number> {
  const followed = spans.filter(
    ({ previous, isPreviousSure }) => previous !== undefined && isPreviousSure === isSure,
  )
  return new Set(followed.map(({ previous }) => previous!))
}

/** The chain that holds some of the span's messages, and none that contradict it. */
function sameFeed(span: LooseSpan, index: ChainIndex): Chain | undefined {
  for (const chain of index.sharing(span)) {
    if (span.sid === null ? haveSameTimes(chain, span) : haveSameMessages(chain, span)) return chain
  }
  return undefined
}

/** The chain whose next message is the span's first. */
function goingOn(span: LooseSpan, index: ChainIndex, ends: ConnectionEnds): Chain | undefined {
  let best: Chain | undefined
  if (span.isBegun) return best
  const pace = paceOfHead(span.sid === null ? span.anchors : [])
  for (const chain of index.before(span)) {
    if (chain.isContinued || isOlder(span, chain) || !fillsHole(chain, span)) continue
    // What one recording holds without a break goes on however long it was silent.
    const isSameRecording = span.previous !== undefined && chain.lastSpans.has(span.previous)
    const isNext =
      isSameRecording || (span.sid === null ? isHeardOfAgain(chain, span, ends) : isNextNumber(chain, span))
    // The next number of a part is as a rule another market's.
    if (!isSameRecording && (span.isPartial === true || chain.isPartial === true)) continue
    if (!isNext || (best !== undefined && !isSameRecording && !isLikelier(span, chain, best, pace))) continue
    const [next] = span.anchors
    if (chain.last !== undefined && next !== undefined && missesChange(chain, chain.last, next, index.all))
      continue
    if (isSameRecording) return chain
    best = chain
  }
  return best
}

/** The one that was heard of last before the span; of those that lived, the one whose messages came in the same way. */
function isLikelier(span: LooseSpan, chain: Chain, best: Chain, pace: MessagePace): boolean {
  const isBefore = ({ lastRecvTs }: Chain): boolean => lastRecvTs <= span.firstRecvTs
  if (isBefore(chain) !== isBefore(best)) return isBefore(chain)
  // Recorders of other markets count alike too.
  if (mayBeAbout(chain, span) !== mayBeAbout(best, span)) return mayBeAbout(chain, span)
  // Of recorders that count one apart, one's message is the other's next: it came no later than itself.
  if (isSaidBefore(chain, span) !== isSaidBefore(best, span)) return isSaidBefore(best, span)
  // What came after it in its own file was another's.
  if (wasOver(chain) !== wasOver(best)) return wasOver(best)
  if (chain.isExpected !== best.isExpected) return best.isExpected
  const laterNs = chain.lastRecvTs - best.lastRecvTs
  const isAlive = isWithin(laterNs, -HEARTBEAT_NS, HEARTBEAT_NS)
  const likeness = isAlive ? comparePaces(chain.pace, best.pace, pace) : 0
  return likeness === 0 ? laterNs > 0n : likeness < 0
}

/** Whether both speak of some market, as far as that is known. */
function mayBeAbout({ markets }: Chain, { marketIds }: LooseSpan): boolean {
  return markets.size === 0 || marketIds.size === 0 || [...marketIds].some((id) => markets.has(id))
}

/** Whether the chain's last message says what happened no earlier than the span's first. */
function isSaidBefore({ last }: Chain, { sid, anchors: [next] }: LooseSpan): boolean {
  if (sid === null || last === undefined || next === undefined) return false
  return last.ts !== last.recvTs && next.ts !== next.recvTs && next.ts <= last.ts
}

/** Another connection was seen to begin, or its own to end. Missing numbers are another recording's to fill. */
function wasOver({ end }: Chain): boolean {
  return end === 'new connection' || end === 'disconnect'
}

function isNextNumber(chain: Chain, span: LooseSpan): boolean {
  // A number tells more than the word of a recorder that missed a message.
  return isWithin(span.firstRecvTs - chain.lastRecvTs, -DISORDER_NS_MAX, PAUSE_NS_MAX)
}

function isHeardOfAgain(chain: Chain, span: LooseSpan, ends: ConnectionEnds): boolean {
  const silenceNs = longest(SILENCE_NS_MIN, longest(chain.silenceNs, longestSilence(span.anchors)))
  const boundNs = silenceNs > SILENCE_NS_MAX ? SILENCE_NS_MAX : silenceNs
  return (
    !chain.isEnded &&
    !ends.isBetween(chain.lastRecvTs, span.firstRecvTs) &&
    isWithin(span.firstRecvTs - chain.lastRecvTs, 0n, boundNs) &&
    // Heartbeats alone name no market.
    mayBeAbout(chain, span)
  )
}

// What is known to follow comes before what may only share its messages.
function compareSpans(a: LooseSpan, b: LooseSpan): number {
  return (
    compare(a.firstRecvTs, b.firstRecvTs) ||
    a.firstSeq - b.firstSeq ||
    Number(a.previous === undefined) - Number(b.previous === undefined) ||
    compare(b.lastRecvTs, a.lastRecvTs)
  )
}

function compareChains(a: Chain, b: Chain): number {
  return (
    compare(a.firstTs, b.firstTs) ||
    compare(a.firstRecvTs, b.firstRecvTs) ||
    (a.sid ?? -1) - (b.sid ?? -1) ||
    a.firstSeq - b.firstSeq
  )
}

/**
 * What a recording missed came after what it still had and before what it had again; and another recording that fills
 * the hole has those two messages as well, if it has their numbers.
 */
function fillsHole(chain: Chain, { sid, firstRecvTs, beforeHole, anchors }: LooseSpan): boolean {
  const { afterHole, lastRecvTs } = chain
  if (beforeHole !== undefined) {
    const same = chain.anchors.get(String(beforeHole.seq))
    if (lastRecvTs < beforeHole.recvTs - DISORDER_NS_MAX || isOther(same, beforeHole)) return false
  }
  if (afterHole === undefined || sid === null) return true
  const same = anchors.find(({ seq }) => seq === afterHole.seq)
  return firstRecvTs <= afterHole.recvTs + DISORDER_NS_MAX && !isOther(same, afterHole)
}

function isOther(anchor: FeedAnchor | undefined, { recvTs }: NumberedMessage): boolean {
  return anchor !== undefined && anchor.recvTs !== recvTs
}

/** Two recorders may have one number at one instant; but what went on over midnight is not what began after it. */
function isOlder({ carriedAt }: LooseSpan, chain: Chain): boolean {
  return carriedAt !== undefined && chain.firstTs > carriedAt && chain.carriedAt !== carriedAt
}

function haveSameMessages(chain: Chain, span: LooseSpan): boolean {
  if (isOlder(span, chain) && chain.firstSeq < span.firstSeq) return false
  let shared = 0
  for (const anchor of span.anchors) {
    const other = chain.anchors.get(keyOf(span.sid, anchor))
    if (other === undefined) continue
    if (other.recvTs !== anchor.recvTs) return false
    shared++
  }
  return shared > 0
}

/** Where both were there, both must have heard the same: all regular anchors, and most of all others. */
function haveSameTimes(chain: Chain, span: LooseSpan): boolean {
  // The last message before an end and the first after it may share an instant.
  const isBehind = span.firstRecvTs === chain.lastRecvTs && span.lastRecvTs > chain.lastRecvTs
  const isBefore = span.lastRecvTs === chain.firstRecvTs && span.lastRecvTs < chain.lastRecvTs
  if ((isBehind && (chain.isEnded || span.isBegun)) || (isBefore && span.isEnded)) return false
  const to = span.lastRecvTs < chain.lastRecvTs ? span.lastRecvTs : chain.lastRecvTs
  const isCommon = ({ recvTs }: FeedAnchor): boolean => recvTs >= span.firstRecvTs && recvTs <= to
  const own = new Set(span.anchors.filter(isCommon).map(({ recvTs }) => recvTs))
  const others = new Set([...chain.anchors.values()].filter(isCommon).map(({ recvTs }) => recvTs))
  let shared = 0
  for (const recvTs of own) if (others.has(recvTs)) shared++
  for (const recvTs of [...own, ...others]) {
    const isRegular = isStrideAnchor(false, { seq: 0, recvTs })
    if (isRegular && !(own.has(recvTs) && others.has(recvTs))) return false
  }
  return shared * 2 > Math.min(own.size, others.size)
}

/** A strand that nothing interrupted goes on as long as its connection is heard of. */
function hearThroughConnections(chains: readonly Chain[]): void {
  const byConnection = new Map<string, Chain[]>()
  for (const chain of chains) {
    for (const connection of chain.connections) {
      const list = byConnection.get(connection)
      if (list === undefined) byConnection.set(connection, [chain])
      else list.push(chain)
    }
  }
  const seen = new Set<Chain>()
  let others = chains.length
  for (const [number, first] of chains.entries()) {
    const group: Chain[] = []
    for (const waiting = [first]; waiting.length > 0;) {
      const chain = waiting.pop()!
      if (seen.has(chain)) continue
      seen.add(chain)
      group.push(chain)
      chain.connection = number
      for (const connection of chain.connections) {
        waiting.push(...(byConnection.get(connection) ?? []))
        byConnection.delete(connection)
      }
    }
    if (group.length < 2) continue
    if (isOfSeveral(group)) for (const chain of group) chain.connection = others++
    else extend(group)
  }
}

/**
 * Whether strands seem to be of one connection and are not: it has a subscription once at a time. Recorders that began
 * together count alike, and what one of them heard may have been put together with what the other did.
 */
function isOfSeveral(group: readonly Chain[]): boolean {
  const last = new Map<number, bigint>()
  for (const { sid, firstTs, lastTs } of group.toSorted((a, b) => compare(a.firstTs, b.firstTs))) {
    if (sid === null) continue
    const before = last.get(sid)
    if (before !== undefined && firstTs < before - DISORDER_NS_MAX) return true
    if (before === undefined || lastTs > before) last.set(sid, lastTs)
  }
  return false
}

function extend(group: readonly Chain[]): void {
  const lastTs = group.map((chain) => chain.lastTs).reduce(longest)
  const latest = new Map<number | null, bigint>()
  for (const { sid, firstTs } of group) latest.set(sid, longest(latest.get(sid) ?? firstTs, firstTs))
  // A subscription's first message looked like another connection's, but the others' numbers went on.
  const wentOn = new Set(group.flatMap((chain) => [...chain.wentOn]))
  const mayGoOn = (chain: Chain): boolean =>
    (!chain.isCut && (chain.end === undefined || chain.end === 'end of file')) ||
    (chain.end === 'new connection' &&
      (wentOn.has(chain.lastConnection ?? '') ||
        group.some(
          ({ sid, firstTs, lastTs: otherTs }) =>
            sid !== null && firstTs <= chain.lastTs && otherTs > chain.lastTs,
        )))
  const ended = group.find((chain) => chain.isEnded && chain.lastTs === lastTs)
  for (const chain of group) {
    // What came after it in its own subscription begins anew, or after a loss.
    const isFollowed = latest.get(chain.sid)! > chain.lastTs
    if (isFollowed || !mayGoOn(chain)) continue
    chain.lastTs = lastTs
    if (ended === undefined) continue
    chain.isEnded = true
    chain.end = ended.end
  }
}

function isWithin(value: bigint, min: bigint, max: bigint): boolean {
  return value >= min && value <= max
}

function compare(a: bigint, b: bigint): number {
  return a < b ? -1 : a > b ? 1 : 0
}
