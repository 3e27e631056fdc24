// The times of the lines of a recorder's connections. A line is never placed before the hour that is open at its receipt, whatever
// time it states.

import { NS_PER_DAY, NS_PER_HOUR, later } from '../../shared/utc-date.ts'
import { BOOK_AGE_NS_MAX } from './line-times.ts'
import { offsetOfLag } from './message-times.ts'
import type { OwnLine } from './piece.ts'
import { isFirstBooks } from './unnumbered-runs.ts'

/** An hour stays open this long after its end. A later line goes to the open hour, and its events to the start of that hour. */
export const GRACE_NS = 15_000_000_000n
/** The exchange's time counts if it is this close to the receive time. */
const BEFORE_NS_MAX = 600_000_000_000n
const AFTER_NS_MAX = 120_000_000_000n

/** The start of the hour that is open when `now` is received. */
export function floorOf(now: bigint): bigint {
  return now < GRACE_NS ? 0n : ((now - GRACE_NS) / NS_PER_HOUR) * NS_PER_HOUR
}

/** The start of an hour's UTC day, ns. */
export function dayOf(hour: number): bigint {
  return ((BigInt(hour) * NS_PER_HOUR) / NS_PER_DAY) * NS_PER_DAY
}

/** The first receive time at which an hour (since the epoch) is the open one, ns. */
export function openFrom(hour: number): bigint {
  return BigInt(hour) * NS_PER_HOUR + GRACE_NS
}

/** By how much the recorder's clock is off, ns. */
export function offsetOf(lag: bigint | undefined): bigint {
  return lag === undefined ? 0n : offsetOfLag(lag)
}

/** The exchange's time of a line, if it may be right. Without sequence numbers, the time of a book is that of its last change. */
export function exchangeTime({ messages, recvTs }: OwnLine, isNumbered: boolean): bigint | undefined {
  for (const { ts, body } of messages) {
    if (ts === undefined || (!isNumbered && body.kind !== 'changes')) continue
    if (ts >= recvTs - BEFORE_NS_MAX && ts <= recvTs + AFTER_NS_MAX) return ts
  }
  return undefined
}

/** The time of a line's books, which carry the time of their last change; undefined without a book. */
export function bookTime(line: OwnLine, received: bigint): bigint | undefined {
  const books = line.messages.filter(({ body }) => body.kind === 'book')
  if (books.length === 0) return undefined
  const changed = books.reduce<bigint | undefined>((last, { ts }) => later(ts, last) ?? last, undefined)
  if (changed === undefined || changed > line.recvTs + AFTER_NS_MAX) return received
  const age = received - changed
  if (!isFirstBooks(line) && age <= BOOK_AGE_NS_MAX && age >= -AFTER_NS_MAX) return changed
  return later(received, changed)
}
