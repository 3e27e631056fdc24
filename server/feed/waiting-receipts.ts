// When messages were received that have a receive time at most and waited for one that has the exchange's too: what the
// recorder wrote, corrected by what its clock was off by, where the messages around bear it out.

import { BACK_NS_MAX, BEHIND_NS_MAX, HEARD_BEFORE_NS_MAX, LEAP_NS_MAX } from './recorder-clock.ts'
import { timesInOrder } from './times-in-order.ts'

interface ReceivedMessage {
  /** As the recorder wrote it. */
  readonly recvTs: bigint | undefined
  /** It changes no book. */
  readonly isIdle: boolean
}

/** Receipts around those that waited, corrected. */
export interface ReceiptsAround {
  /** The latest of the connection so far, and of those before it. */
  readonly before: bigint | undefined
  readonly beforeConnection: bigint | undefined
  /** That of the message after them, where one is known. */
  readonly next: bigint | undefined
  /** What was believed of the clock before that message, and what is now: the recorder's less the right one. */
  readonly offsets: readonly [before: bigint, now: bigint]
}

export interface Receipt {
  readonly offset: bigint
  /** Corrected by `offset`. */
  readonly received: bigint | undefined
  /** The same, where the others bear it out. */
  readonly time: bigint | undefined
  /** The first from this message on, the one after them all included, that is borne out. */
  readonly following: bigint | undefined
}

export function judgeReceipts(messages: readonly ReceivedMessage[], around: ReceiptsAround): Receipt[] {
  const { before, beforeConnection, next } = around
  const isAnotherRecording = next !== undefined && next < (beforeConnection ?? 0n) - BACK_NS_MAX
  const from = before ?? (next === undefined || isAnotherRecording ? undefined : beforeConnection)
  const offsets = offsetsOf(messages, around)
  const received = messages.map(({ recvTs }, place) =>
    recvTs === undefined ? undefined : recvTs - offsets[place]!,
  )
  const times = timesInOrder(received, from, next, BACK_NS_MAX)
  setAsideEnds(messages, times, before, next !== undefined)
  const receipts: Receipt[] = []
  let following = next
  for (let place = messages.length - 1; place >= 0; place--) {
    const time = times[place]
    following = time ?? following
    receipts[place] = { offset: offsets[place]!, received: received[place], time, following }
  }
  return receipts
}

// When the clock was put is not known: of both times the later one, as nothing is known before its time.
function offsetsOf(
  messages: readonly ReceivedMessage[],
  { next, offsets: [before, now] }: ReceiptsAround,
): bigint[] {
  const [low, high] = before < now ? [before, now] : [now, before]
  const latest = next === undefined ? undefined : next + BACK_NS_MAX
  return messages.map(({ recvTs }) =>
    recvTs !== undefined && latest !== undefined && recvTs - low > latest ? high : low,
  )
}

/** Times that nothing bears out: a first one long before all others, a last one long after them. */
function setAsideEnds(
  messages: readonly ReceivedMessage[],
  times: (bigint | undefined)[],
  before: bigint | undefined,
  hasNext: boolean,
): void {
  const first = times.findIndex((time) => time !== undefined)
  if (first === -1) return
  const second = times.find((time, place) => place > first && time !== undefined)
  const isAlone = before === undefined && second !== undefined && messages[first]!.isIdle
  if (isAlone && times[first]! < second - HEARD_BEFORE_NS_MAX) times[first] = undefined
  if (hasNext) return
  const last = times.findLastIndex((time) => time !== undefined)
  const beforeLast = times.findLast((time, place) => place < last && time !== undefined) ?? before
  if (beforeLast === undefined) return
  const aheadMax = messages[last]!.isIdle ? BEHIND_NS_MAX : LEAP_NS_MAX
  if (times[last]! > beforeLast + aheadMax) times[last] = undefined
}
