// When messages of one connection happened. The exchange's time counts, unless it alone leaves its neighbours; without one the
// receive time counts, corrected by what the connection shows of its recorder's clock.

import { earlier } from '../../shared/utc-date.ts'

/** A time that leaves those around it by more is wrong. Channels of one connection overtake each other by less. */
export const LEAVES_NS_MIN = 5_000_000_000n
/** A message takes no longer from the exchange to the recorder, unless the recorder's clock is ahead. */
const LAG_NS_MAX = 2_000_000_000n

/** The times of a message as recorded, ns. */
export interface RecordedTimes {
  readonly ts: bigint | undefined
  readonly recvTs: bigint | undefined
}

/** Which of `values`, in the order of the connection, alone leave their neighbours. */
export function leavingTimes(values: readonly (bigint | undefined)[]): boolean[] {
  const places = values.flatMap((value, place) => (value === undefined ? [] : [place]))
  const leaves = values.map(() => false)
  let before: bigint | undefined
  for (const [index, place] of places.entries()) {
    const value = values[place]!
    const next = [places[index + 1], places[index + 2]].flatMap((at) => (at === undefined ? [] : [values[at]!]))
    const isAhead = next.length > 0 && next.every((other) => other < value - LEAVES_NS_MIN)
    const limit = before === undefined ? undefined : before - LEAVES_NS_MIN
    const isBack = limit !== undefined && value < limit && !(next.length === 2 && next.every((other) => other < limit))
    leaves[place] = isAhead || isBack
    if (!leaves[place]) before = value
  }
  return leaves
}

/**
 * The smallest receive time less the exchange's, ns, where it shows that the recorder's clock is off: below 0, or more than a
 * message is under way. 0 where it does not, `undefined` where no message has both times. A difference that neither of the
 * neighbouring ones bears out does not count: one of its times is wrong.
 */
export function clockOffset(times: readonly RecordedTimes[]): bigint | undefined {
  const lags = times.flatMap(({ ts, recvTs }) => (ts === undefined || recvTs === undefined ? [] : [recvTs - ts]))
  const smallest = lags
    .filter((lag, index) => lags.length === 1 || isNear(lag, lags[index - 1]) || isNear(lag, lags[index + 1]))
    .reduce<bigint | undefined>((found, lag) => (found === undefined ? lag : earlier(lag, found)), undefined)
  if (smallest === undefined) return undefined
  return smallest < 0n || smallest > LAG_NS_MAX ? smallest : 0n
}

/**
 * When each of a connection's messages happened, in its order: never outside the times of its neighbours by more than
 * LEAVES_NS_MIN. `before` is the time of the message before the first.
 */
export function messageTimes(
  times: readonly RecordedTimes[],
  offset: bigint,
  before: bigint | undefined,
): (bigint | undefined)[] {
  const stated = times.map(({ ts, recvTs }) => ts ?? (recvTs === undefined ? undefined : recvTs - offset))
  const leaves = leavingTimes([before, ...stated]).slice(1)
  const last = times.findLastIndex((_, place) => stated[place] !== undefined)
  const { ts: lastTs, recvTs: lastRecvTs } = times[last] ?? { ts: undefined, recvTs: undefined }
  // Nothing comes after it that could tell.
  if (lastTs !== undefined && lastRecvTs !== undefined && lastTs > lastRecvTs - offset + LEAVES_NS_MIN)
    leaves[last] = true
  const result: (bigint | undefined)[] = []
  const next = nextStaying(stated, leaves)
  for (const [place, { ts, recvTs }] of times.entries()) {
    const stays = leaves[place] === true ? undefined : stated[place]
    const after = next[place]
    const received = ts === undefined || recvTs === undefined ? undefined : recvTs - offset
    const isFit =
      received !== undefined &&
      (before === undefined || received >= before - LEAVES_NS_MIN) &&
      (after === undefined || received <= after + LEAVES_NS_MIN)
    // A book is not known before the next message came.
    const time = stays ?? (isFit ? received : (after ?? before ?? stated[place]))
    result.push(time)
    if (time !== undefined && (before === undefined || time > before)) before = time
  }
  return result
}

/** By place, the first time after it that stays with its neighbours. */
function nextStaying(
  stated: readonly (bigint | undefined)[],
  leaves: readonly boolean[],
): (bigint | undefined)[] {
  const result: (bigint | undefined)[] = []
  let next: bigint | undefined
  for (let place = stated.length - 1; place >= 0; place--) {
    result[place] = next
    if (leaves[place] !== true) next = stated[place] ?? next
  }
  return result
}

function isNear(lag: bigint, other: bigint | undefined): boolean {
  if (other === undefined) return false
  return lag > other ? lag - other <= LEAVES_NS_MIN : other - lag <= LEAVES_NS_MIN
}
