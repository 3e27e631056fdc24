// Lunex's messages: whole books, which name no kind, and changes. Prices are whole cents, sizes absolute and in contracts,
// times microseconds.
//   {"lunex":1,"book":"nyc~2026-07-01~80","time":…,"bids":[[41,10]],"asks":[[44,3]]}
//   {"lunex":1,"type":"change","book":"nyc~2026-07-01~80","time":…,"side":"bid","cents":42,"size":5}

import { PRICE_UNITS_PER_CENT, QTY_UNITS_PER_CONTRACT, SIDE_ASK, SIDE_BID } from '../../../shared/lob-v1.ts'
import { BadLineError, shown } from '../../../server/feed/bad-line.ts'
import type { Frame } from '../../../server/feed/frame.ts'
import type { BookLevel } from '../../../server/lake/exact-book.ts'

const NS_PER_US = 1_000n

export type LunexMessage =
  | { readonly kind: 'book'; readonly id: string; readonly ts: bigint; readonly levels: readonly BookLevel[] }
  | { readonly kind: 'change'; readonly id: string; readonly ts: bigint; readonly level: BookLevel }
  | { readonly kind: 'disconnect' }
  /** Until then was listened. */
  | { readonly kind: 'heard'; readonly ts: bigint }

export function isLunexFrame(frame: Frame): boolean {
  return frame['lunex'] === 1
}

export function parseLunexFrame(frame: Frame): LunexMessage {
  const { type, book: id, ts_ms: ms } = frame
  if (type === 'disconnect') return { kind: 'disconnect' }
  if (type === 'heartbeat') return { kind: 'heard', ts: BigInt(wholeNumber(ms)) * 1000n * NS_PER_US }
  if (typeof id !== 'string') throw new BadLineError(`no book: ${shown(id)}`)
  const ts = BigInt(wholeNumber(frame['time'])) * NS_PER_US
  if (type === 'change') {
    const side = frame['side'] === 'bid' ? SIDE_BID : SIDE_ASK
    return { kind: 'change', id, ts, level: levelOf(side, frame['cents'], frame['size']) }
  }
  const levels = [...levelsOf(SIDE_BID, frame['bids']), ...levelsOf(SIDE_ASK, frame['asks'])]
  return { kind: 'book', id, ts, levels }
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
