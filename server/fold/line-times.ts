// The times of the lines of a connection without sequence numbers. Its books state when they last changed, not when they were
// sent.

import { later } from '../../shared/utc-date.ts'
import type { FeedMessage } from '../feed/feed-message.ts'
import { OUTLIER_NS_MIN, clockOffset, messageTimes, outlierTimes } from './message-times.ts'
import type { RecordedTimes } from './message-times.ts'
import type { Line } from './piece.ts'
import { isFirstBooks } from './unnumbered-runs.ts'

/** A book that is received this long after its last change was not sent because of that change. */
export const BOOK_AGE_NS_MAX = 1_000_000_000n
/** A book that is received this long after the next message's time was sent before that message. */
const UNDER_WAY_NS_MAX = 1_000_000_000n

export interface LineTimes {
  readonly times: readonly (bigint | undefined)[]
  /** How many lines state another time than they get. */
  readonly correctedTimes: number
}

/** By how much the recorder's clock is off: see `clockOffset`. */
function offsetOf(lines: readonly Line[]): bigint {
  const given = lines.map(({ messages: [first], recvTs, isOverlap }) => ({
    ts: first?.body.kind === 'book' || isOverlap === true ? undefined : first?.ts,
    recvTs,
  }))
  return clockOffset(given) ?? 0n
}

/** The time of each line of a chain. */
export function lineTimes(lines: readonly Line[]): LineTimes {
  const offset = offsetOf(lines)
  const isWrong = outlierTimes(lines.map(({ recvTs }) => recvTs))
  const stated = lines.map((line, place) =>
    statedTimes(line, isWrong[place] === 1 ? undefined : line.recvTs, offset),
  )
  const times = messageTimes(stated, offset, undefined)
  const next: (bigint | undefined)[] = []
  for (let place = lines.length - 1; place >= 0; place--)
    next[place] = stated[place + 1]?.ts === undefined ? next[place + 1] : times[place + 1]
  let before: bigint | undefined
  for (let place = 0; place < lines.length; place++) {
    const changed = lastChange(lines[place]!)
    const { ts, recvTs } = stated[place]!
    if (changed !== undefined && ts === undefined)
      times[place] = bookTime(changed, recvTs === undefined ? undefined : times[place], before, next[place])
    const time = times[place]
    if (time !== undefined) before = later(time, before)
  }
  const isCorrected = ({ ts }: RecordedTimes, place: number): boolean =>
    ts !== undefined && ts !== times[place] && lines[place]!.isOverlap !== true
  return { times, correctedTimes: stated.filter(isCorrected).length }
}

/**
 * When a book was sent: not before its last change, and not after the next message if that shows that the receipt was late.
 * Without a usable receive time, the book gets the time of the message before it. A first book whose last change is old gets the
 * time of the next message.
 */
function bookTime(
  changed: bigint,
  received: bigint | undefined,
  before: bigint | undefined,
  next: bigint | undefined,
): bigint {
  if (received === undefined) {
    const isOld = before === undefined && next !== undefined && next - changed > BOOK_AGE_NS_MAX
    return isOld ? next : later(changed, before)
  }
  if (changed > received + OUTLIER_NS_MIN) return received
  const sent = later(received, changed)
  return next === undefined || sent <= next + UNDER_WAY_NS_MAX ? sent : later(next, changed)
}

/** The latest change of a line's books; `undefined` without a book. */
function lastChange({ messages }: Line): bigint | undefined {
  let last: bigint | undefined
  for (const { ts, body } of messages) if (body.kind === 'book' && ts !== undefined) last = later(ts, last)
  return last
}

/** A book that changed after its receipt becomes unknown: one of both clocks is wrong. */
export function provenAt(message: FeedMessage, at: bigint): FeedMessage {
  const { ts, body } = message
  if (body.kind !== 'book' || ts === undefined || ts <= at) return message
  return { ...message, body: { kind: 'finished', marketId: body.marketId } }
}

/** A book's time counts only if the book was sent because of that change, which its receive time shows. */
function statedTimes(line: Line, recvTs: bigint | undefined, offset: bigint): RecordedTimes {
  const { ts, body } = line.messages[0] ?? {}
  if (body?.kind !== 'book') return { ts, recvTs: line.recvTs }
  if (ts === undefined || recvTs === undefined) return { ts: undefined, recvTs }
  const isOld = isFirstBooks(line) || recvTs - offset - ts > BOOK_AGE_NS_MAX
  return { ts: isOld ? undefined : ts, recvTs }
}
