// Lunex's messages: whole books, which have no type, and changes. Prices are whole cents, sizes absolute and in contracts, times
// microseconds.
//   {"lunex":1,"book":"nyc~2026-07-01~80","time":…,"bids":[[41,10]],"asks":[[44,3]]}
//   {"lunex":1,"type":"change","book":"nyc~2026-07-01~80","time":…,"side":"bid","cents":42,"size":5}

import {
  EVENT_SET,
  PRICE_UNITS_PER_CENT,
  QTY_UNITS_PER_CONTRACT,
  SIDE_ASK,
  SIDE_BID,
} from '../../../shared/lob-v1.ts'
import { BadLineError, shown } from '../../../server/feed/bad-line.ts'
import type { FeedBody, FeedMessage } from '../../../server/feed/feed-message.ts'
import type { Frame } from '../../../server/feed/frame.ts'
import type { BookLevel } from '../../../server/lake/exact-book.ts'

const NS_PER_US = 1_000n

export function isLunexFrame(frame: Frame): boolean {
  return frame['lunex'] === 1
}

/** @throws {BadLineError} for a frame that does not match its type */
export function readLunexFrame(frame: Frame): FeedMessage {
  const { type, book: marketId } = frame
  if (type === 'disconnect') return messageOf(undefined, { kind: 'disconnect' })
  if (type === 'heartbeat') return messageOf(undefined, { kind: 'other', name: 'heartbeat' })
  if (typeof marketId !== 'string') throw new BadLineError(`no book: ${shown(marketId)}`)
  const ts = BigInt(wholeNumber(frame['time'])) * NS_PER_US
  if (type === 'change') {
    const side = frame['side'] === 'bid' ? SIDE_BID : SIDE_ASK
    const change = { marketId, ...levelOf(side, frame['cents'], frame['size']) }
    return messageOf(ts, { kind: 'changes', event: EVENT_SET, changes: [change] })
  }
  const levels = [...levelsOf(SIDE_BID, frame['bids']), ...levelsOf(SIDE_ASK, frame['asks'])]
  return messageOf(ts, { kind: 'book', marketId, levels })
}

function messageOf(ts: bigint | undefined, body: FeedBody): FeedMessage {
  return { sid: undefined, seq: undefined, ts, body }
}

function levelsOf(side: number, list: unknown): BookLevel[] {
  if (!Array.isArray(list)) throw new BadLineError(`no side: ${shown(list)}`)
  return list.map((level: unknown) => {
    const [cents, size]: readonly unknown[] = Array.isArray(level) ? level : []
    return levelOf(side, cents, size)
  })
}

function levelOf(side: number, cents: unknown, size: unknown): BookLevel {
  return {
    side,
    price: wholeNumber(cents) * PRICE_UNITS_PER_CENT,
    qty: wholeNumber(size) * QTY_UNITS_PER_CONTRACT,
  }
}

function wholeNumber(value: unknown): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new BadLineError(`no whole number: ${shown(value)}`)
}
