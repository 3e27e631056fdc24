// What a recorder's clock is worth, as messages show that have the exchange's time besides. The exchange's is right again
// and again; a recorder may write local time as UTC, put its clock back an hour, or begin before it was set.

// An exchange's time is never after the receipt but for the clocks' difference; it may be a slow connection's before.
export const AHEAD_NS_MAX = 120_000_000_000n
export const BEHIND_NS_MAX = 600_000_000_000n
// Channels of one connection may overtake each other by so much.
export const BACK_NS_MAX = 5_000_000_000n
// A file may begin with what was heard so long before its first message: the end of a silence, or of a connection.
export const HEARD_BEFORE_NS_MAX = 3_600_000_000_000n
// A time so far ahead of the one before, with nothing after it to bear it out, is none: 31 days.
export const LEAP_NS_MAX = 2_678_400_000_000_000n
/** Zones differ by quarters of an hour, and all of them lie within a good day. */
const QUARTER_NS = 900_000_000_000n
const ZONE_NS_MAX = 26n * 3_600_000_000_000n
const ZONE_AHEAD_NS_MAX = 30_000_000_000n
/** Further messages that must differ by as much before a clock is taken to be off: a zone is told by the first. */
const FURTHER_MIN = 3
/** Of so many that agree with nothing, each is judged alone. */
const FURTHER_MAX = 8
/** So many messages, most of them without the exchange's time, are waited for. */
const FOLLOWING_MAX = 2_000
/** Further messages that contradict one which happened after its own receipt: one of them may be wrong itself. */
const CONTRADICTING_MIN = 2

/** Whether both times are of one moment, the recorder's clock being off by `offset`. */
export function agrees(ts: bigint, recvTs: bigint, offset: bigint): boolean {
  const lag = recvTs - ts - offset
  return lag >= -AHEAD_NS_MAX && lag <= BEHIND_NS_MAX
}

export interface DoubtfulPair {
  readonly ts: bigint
  /** As the recorder wrote it. */
  readonly recvTs: bigint
  /** The receipt before it, corrected, and the event before it. */
  readonly before: bigint | undefined
  readonly beforeTs: bigint | undefined
  /** By how much the connection's message before it happened after its receipt, ns; undefined where none tells. */
  readonly aheadNs: bigint | undefined
}

export interface TimesGiven {
  readonly ts: bigint | undefined
  readonly recvTs: bigint | undefined
}

export interface PairVerdict {
  readonly offset: bigint
  readonly wrong: 'ts' | 'recvTs' | undefined
  /** Whether messages agree on the offset. */
  readonly isTold: boolean
}

/** What is wrong with a message whose times are apart; undefined while more of `following` has to come. */
export function judgePair(
  pair: DoubtfulPair,
  following: readonly TimesGiven[],
  {
    offset,
    isSettled,
    isFinal,
    isInOrder,
  }: {
    readonly offset: bigint
    readonly isSettled: boolean
    readonly isFinal: boolean
    /** Receipts have come in their order so far: only then do neighbours tell what was ahead. */
    readonly isInOrder: boolean
  },
): PairVerdict | undefined {
  const known = isSettled ? [offset] : [offset, 0n]
  const own = known.find((one) => agrees(pair.ts, pair.recvTs, one))
  const pairs = following.filter((one): one is { ts: bigint; recvTs: bigint } => isPair(one))
  const mayTell = !isFinal && pairs.length < FURTHER_MAX && following.length < FOLLOWING_MAX
  if (own !== undefined) {
    const isWrong = isInOrder ? isWronglyAhead(pair, pairs, own) : false
    if (isWrong === undefined && mayTell) return undefined
    // Where its receipt goes back against those around it, its own time is right.
    const wrong = isWrong === true ? wrongAlone(pair, following, own) : undefined
    return { offset: own, wrong, isTold: wrong === undefined }
  }
  for (const one of known) {
    if (pairs.some(({ ts, recvTs }) => agrees(ts, recvTs, one))) {
      return { offset: one, wrong: wrongAlone(pair, following, one), isTold: false }
    }
  }
  const zone = zoneOf(pair.recvTs - pair.ts)
  const shift = zone ?? pair.recvTs - pair.ts
  const alike = pairs.filter(({ ts, recvTs }) => agrees(ts, recvTs, shift)).length
  if (alike >= (zone === undefined ? FURTHER_MIN : 1))
    return { offset: shift, wrong: undefined, isTold: true }
  if (mayTell) return undefined
  return { offset, wrong: wrongAlone(pair, following, offset), isTold: false }
}

/** Whether a message happened so long after its receipt that the recorder's clock is behind, or the message wrong, ns. */
export function isAheadAlone(aheadNs: bigint, before: bigint | undefined): boolean {
  return aheadNs > notNegative(before) + BACK_NS_MAX
}

/**
 * Whether a message that happened well after its own receipt is wrong: those that follow happened before it and near
 * their receipts, or as near as what came before. Not where one of them is ahead alike: then the clock is behind.
 * Undefined where they do not tell.
 */
function isWronglyAhead(
  { ts, recvTs, aheadNs: before }: DoubtfulPair,
  pairs: readonly { readonly ts: bigint; readonly recvTs: bigint }[],
  offset: bigint,
): boolean | undefined {
  const aheadNs = ts - recvTs + offset
  if (!isAheadAlone(aheadNs, before)) return false
  let contradicting = 0
  for (const pair of pairs) {
    const ownNs = pair.ts - pair.recvTs + offset
    if (ownNs >= aheadNs - BACK_NS_MAX) return false
    const isBefore = before !== undefined || pair.ts < ts - BACK_NS_MAX
    if (isBefore && distance(ownNs, notNegative(before)) <= BACK_NS_MAX) contradicting++
    if (contradicting === CONTRADICTING_MIN) return true
  }
  return undefined
}

export function notNegative(ns: bigint | undefined): bigint {
  return ns === undefined || ns < 0n ? 0n : ns
}

function isPair({ ts, recvTs }: TimesGiven): boolean {
  return ts !== undefined && recvTs !== undefined
}

/** A message of which one clock alone tells the time. */
export interface LoneTime {
  readonly time: bigint
  /** It changes no book. */
  readonly isIdle: boolean
  /** The event before it in its connection. */
  readonly last: bigint | undefined
}

/** Whether only the next message tells if the time is right. */
export function isDoubtfulAlone({ time, isIdle, last }: LoneTime): boolean {
  return last === undefined ? isIdle : time > last + BEHIND_NS_MAX
}

/** The right time, `next` being the one after it: its own is wrong when that goes back, or when nothing bears it out. */
export function judgeAlone(alone: LoneTime, next: bigint | undefined): bigint {
  const { time, isIdle, last } = alone
  const isBefore = last === undefined && next !== undefined && time < next - HEARD_BEFORE_NS_MAX
  const isAfter = next !== undefined && time > next + BEHIND_NS_MAX
  const isLost = next === undefined && last !== undefined && (isIdle || time > last + LEAP_NS_MAX)
  return isDoubtfulAlone(alone) && (isBefore || isAfter || isLost) ? (last ?? next!) : time
}

/** By how many quarters of an hour the recorder's clock is ahead, where nothing else is between the two times. */
function zoneOf(lagNs: bigint): bigint | undefined {
  const shifted = lagNs + QUARTER_NS / 2n
  const quarters = shifted / QUARTER_NS - (shifted % QUARTER_NS < 0n ? 1n : 0n)
  const zone = quarters * QUARTER_NS
  const rest = lagNs - zone
  const isZone = zone !== 0n && zone >= -ZONE_NS_MAX && zone <= ZONE_NS_MAX
  return isZone && rest >= -ZONE_AHEAD_NS_MAX && rest <= AHEAD_NS_MAX ? zone : undefined
}

/** Which time of a single message leaves the course of those around it; undefined where there are none. */
function wrongAlone(
  { ts, recvTs, before, beforeTs }: DoubtfulPair,
  following: readonly TimesGiven[],
  offset: bigint,
): 'ts' | 'recvTs' | undefined {
  const nextRecvTs = following.find((one) => one.recvTs !== undefined)?.recvTs
  const next = nextRecvTs === undefined ? undefined : nextRecvTs - offset
  const nextTs = following.find((one) => one.ts !== undefined && one.recvTs !== undefined)?.ts
  const time = recvTs - offset
  const isTsOut = isOutside(ts, beforeTs ?? before, nextTs ?? next)
  const isRecvOut = isOutside(time, before, next)
  if (isTsOut !== isRecvOut) return isTsOut ? 'ts' : 'recvTs'
  const around = before ?? next
  if (around === undefined) return undefined
  return distance(time, around) <= distance(ts, beforeTs ?? nextTs ?? around) ? 'ts' : 'recvTs'
}

function isOutside(time: bigint, from: bigint | undefined, to: bigint | undefined): boolean {
  return (from !== undefined && time < from - BACK_NS_MAX) || (to !== undefined && time > to + BACK_NS_MAX)
}

export function distance(a: bigint, b: bigint): bigint {
  return a > b ? a - b : b - a
}
