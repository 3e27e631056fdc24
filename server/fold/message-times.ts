// The times of one connection's messages. The exchange's time counts, unless it alone is away from its neighbours. Without one, the
// receive time counts, corrected by the offset of the recorder's clock.

import { NS_PER_HOUR } from '../../shared/utc-date.ts'

/** A time that is further than this from its neighbours is wrong. Channels of one connection overtake each other by less. */
export const OUTLIER_NS_MIN = 5_000_000_000n
/** The longest delay from the exchange to the recorder. A longer one means that the recorder's clock is ahead. */
const LAG_NS_MAX = 2_000_000_000n
/** A recorder that writes local time is off by at most this (UTC+14). Two messages must agree on a larger offset. */
export const CLOCK_OFF_NS_MAX = 14n * NS_PER_HOUR

/** The times of a message as recorded, ns. */
export interface RecordedTimes {
  readonly ts: bigint | undefined
  readonly recvTs: bigint | undefined
}

/**
 * 1 for each outlier of `values`: a time that alone is far from its neighbours in the connection. `before` precedes the first
 * value. If two neighbours contradict each other and one of them is far from its receive time, that one is the outlier.
 * `isDoubted` states this by place; undefined if the value is a receive time itself.
 */
export function outlierTimes(
  values: readonly (bigint | undefined)[],
  before?: bigint,
  isDoubted: (place: number) => boolean | undefined = () => undefined,
): Uint8Array {
  const outliers = new Uint8Array(values.length)
  // The places of the next two values.
  let [second, third] = [nextDefined(values, 0), 0]
  for (let place = second; place < values.length; place = second) {
    const value = values[place]!
    second = nextDefined(values, place + 1)
    third = nextDefined(values, second + 1)
    const [next, nextButOne] = [values[second], values[third]]
    let isAhead = false
    // Most times ascend: nothing to compute for them.
    if (next !== undefined && next < value - OUTLIER_NS_MIN) {
      const [own, other] = [isDoubted(place), isDoubted(second)]
      const isDecided = own !== undefined && other !== undefined && own !== other
      isAhead = isDecided ? own : isAheadOf(value, before, next, nextButOne)
    }
    const isBack = before !== undefined && value < before
    if (isAhead || (isBack && isBackAlone(value, before! - OUTLIER_NS_MIN, next, nextButOne)))
      outliers[place] = 1
    else before = value
  }
  return outliers
}

/** Whether a value is later than those after it. If only one follows, the one of the two that is further from `before` is wrong. */
function isAheadOf(
  value: bigint,
  before: bigint | undefined,
  next: bigint,
  nextButOne: bigint | undefined,
): boolean {
  if (nextButOne !== undefined) return nextButOne < value - OUTLIER_NS_MIN
  return before === undefined || value - before > before - next
}

/** Whether a value is before `limit`, and the two after it are not both before it. */
function isBackAlone(
  value: bigint,
  limit: bigint,
  next: bigint | undefined,
  nextButOne: bigint | undefined,
): boolean {
  if (value >= limit) return false
  return next === undefined || nextButOne === undefined || next >= limit || nextButOne >= limit
}

function nextDefined(values: readonly unknown[], from: number): number {
  let place = from
  while (place < values.length && values[place] === undefined) place++
  return place
}

/**
 * By how much the recorder's clock is off, ns: the smallest delay (receive time minus exchange time) if it is below 0 or above the
 * longest delay. 0 if it is between them; `undefined` if no message has both times. A delay that is unlike both of its neighbours
 * does not count: one of its times is wrong.
 */
export function clockOffset(times: readonly RecordedTimes[]): bigint | undefined {
  let smallest: bigint | undefined
  let [before, lag]: [bigint | undefined, bigint | undefined] = [undefined, undefined]
  let count = 0
  const judge = (next: bigint | undefined): void => {
    if (lag === undefined || (smallest !== undefined && lag >= smallest)) return
    const isOnly = count === 1 && next === undefined && lag >= -CLOCK_OFF_NS_MAX && lag <= CLOCK_OFF_NS_MAX
    if (isOnly || isNear(lag, before) || isNear(lag, next)) smallest = lag
  }
  for (const { ts, recvTs } of times) {
    if (ts === undefined || recvTs === undefined) continue
    const next = recvTs - ts
    judge(next)
    ;[before, lag] = [lag, next]
    count++
  }
  judge(undefined)
  return smallest === undefined ? undefined : offsetOfLag(smallest)
}

/** By how much the recorder's clock is off, ns, if the smallest delay is `lag`. */
export function offsetOfLag(lag: bigint): bigint {
  return lag < 0n || lag > LAG_NS_MAX ? lag : 0n
}

/**
 * The time of each of a connection's messages, in their order. It is never away from the times of its neighbours by more than
 * OUTLIER_NS_MIN. `before` is the time of the message before the first.
 */
export function messageTimes(
  times: readonly RecordedTimes[],
  offset: bigint,
  before: bigint | undefined,
): (bigint | undefined)[] {
  const stated = times.map(({ ts, recvTs }) => ts ?? (recvTs === undefined ? undefined : recvTs - offset))
  const outliers = outlierTimes(stated, before, (place) => {
    const { ts, recvTs } = times[place]!
    if (ts === undefined || recvTs === undefined) return undefined
    const lag = recvTs - offset - ts
    return lag > OUTLIER_NS_MIN || lag < -OUTLIER_NS_MIN
  })
  const last = times.findLastIndex((_, place) => stated[place] !== undefined)
  const { ts: lastTs, recvTs: lastRecvTs } = times[last] ?? { ts: undefined, recvTs: undefined }
  const receivedBefore =
    times.findLast(({ recvTs }, place) => place < last && recvTs !== undefined)?.recvTs ??
    (before === undefined ? undefined : before + offset)
  const isReceivedInOrder =
    lastRecvTs !== undefined &&
    (receivedBefore === undefined || lastRecvTs >= receivedBefore - OUTLIER_NS_MIN)
  // The last message has no later neighbour: compare it with its receive time, unless that goes back itself.
  if (lastTs !== undefined && isReceivedInOrder && lastTs > lastRecvTs - offset + OUTLIER_NS_MIN)
    outliers[last] = 1
  if (!stated.includes(undefined) && !outliers.includes(1)) return stated
  const result: (bigint | undefined)[] = []
  const next = nextRegular(stated, outliers)
  for (let place = 0; place < times.length; place++) {
    const { ts, recvTs } = times[place]!
    let time = outliers[place] === 1 ? undefined : stated[place]
    if (time === undefined) {
      const after = next[place]
      const received = ts === undefined || recvTs === undefined ? undefined : recvTs - offset
      const isFit =
        received !== undefined &&
        (before === undefined || received >= before - OUTLIER_NS_MIN) &&
        (after === undefined || received <= after + OUTLIER_NS_MIN)
      // Take the time of the next message: a book must not be known too early.
      time = isFit ? received : (after ?? before ?? stated[place])
    }
    result.push(time)
    if (time !== undefined && (before === undefined || time > before)) before = time
  }
  return result
}

/** By place: the next time that is no outlier. */
function nextRegular(stated: readonly (bigint | undefined)[], outliers: Uint8Array): (bigint | undefined)[] {
  const result: (bigint | undefined)[] = []
  let next: bigint | undefined
  for (let place = stated.length - 1; place >= 0; place--) {
    result[place] = next
    if (outliers[place] === 0) next = stated[place] ?? next
  }
  return result
}

function isNear(lag: bigint, other: bigint | undefined): boolean {
  if (other === undefined) return false
  return lag > other ? lag - other <= OUTLIER_NS_MIN : other - lag <= OUTLIER_NS_MIN
}
