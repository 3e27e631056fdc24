// Polymarket market-channel frames → messages for the fold. `book` is read with `bids`/`asks` and the older `buys`/`sells`, with
// levels in any order, also without `event_type`. `price_change` is read in three forms: a `price_changes` list, a `changes` list
// for one token, and one flat change. Sizes are absolute.

import {
  EVENT_SET,
  PRICE_UNITS_PER_DOLLAR,
  QTY_UNITS_PER_CONTRACT,
  SIDE_ASK,
  SIDE_BID,
} from '../../../shared/lob-v1.ts'
import { BadLineError, shown } from '../../feed/bad-line.ts'
import { scaledValue } from '../../feed/decimal.ts'
import type { FeedBody, FeedMessage, LevelChange } from '../../feed/feed-message.ts'
import { isFrame } from '../../feed/frame.ts'
import type { Frame } from '../../feed/frame.ts'
import { instantOf } from '../../feed/instant.ts'
import { refusePriceTwice } from '../../feed/price-levels.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { knownIds } from '../known-ids.ts'

/** All of these types are public. */
export const TYPICAL_TYPES: ReadonlySet<string> = new Set([
  'book',
  'price_change',
  'tick_size_change',
  'last_trade_price',
  'best_bid_ask',
  'new_market',
  'market_resolved',
])
// Members that mark an untyped object as Polymarket's: its first books and oldest changes have no type.
const TYPICAL_CONTENT = ['bids', 'asks', 'buys', 'sells', 'price_changes', 'changes', 'price']

/** The id of a market. */
export const idOf = knownIds((market, asset) => `${market}:${asset}`)

const PRICE_DIGITS = 4
const QTY_DIGITS = 6

/** Whether a frame is typical of Polymarket: it has a token and its condition, or is a subscription with its tokens. */
export function isTypicalPolymarketFrame(frame: Frame): boolean {
  if (Array.isArray(frame['assets_ids'])) return true
  if (typeof frame['market'] !== 'string') return false
  const type = frame['event_type'] ?? frame['type']
  if (typeof type === 'string') return TYPICAL_TYPES.has(type)
  return type === undefined && TYPICAL_CONTENT.some((key) => frame[key] !== undefined)
}

/** The first books have no type; neither have the client's commands. */
export function isUntypedPolymarketFrame(value: Frame): boolean {
  return (
    (Array.isArray(value['assets_ids']) && value['operation'] !== undefined) ||
    (value['market'] !== undefined &&
      (value['asset_id'] !== undefined || value['price_changes'] !== undefined))
  )
}

/** @throws {BadLineError} for a frame that does not match its type */
export function readPolymarketFrame(frame: Frame): FeedMessage {
  const body = parseBody(frame)
  const timestamp = frame['timestamp'] ?? undefined
  const ts = timestamp === undefined ? undefined : instantOf(timestamp)
  if (timestamp !== undefined && ts === undefined && body.kind !== 'other') {
    throw new BadLineError(`timestamp is no time: ${shown(timestamp)}`)
  }
  return { sid: undefined, seq: undefined, ts, body }
}

function parseBody(frame: Frame): FeedBody {
  const { operation, assets_ids: tokens } = frame
  if (operation === 'unsubscribe' && Array.isArray(tokens))
    return { kind: 'left', tokens: new Set(tokens.map(String)) }
  const type = frame['event_type'] ?? frame['type'] ?? typeOfUntyped(frame)
  switch (type) {
    case 'book':
      return { kind: 'book', marketId: marketIdOf(frame, frame), levels: bookLevels(frame) }
    case 'price_change':
      return { kind: 'changes', event: EVENT_SET, changes: priceChanges(frame) }
    case 'disconnect':
      return { kind: 'disconnect' }
    default:
      return { kind: 'other', name: typeof type === 'string' ? type : 'unknown' }
  }
}

function typeOfUntyped(frame: Frame): string | undefined {
  if (frame['price_changes'] !== undefined || frame['changes'] !== undefined) return 'price_change'
  return ['bids', 'asks', 'buys', 'sells'].some((key) => frame[key] !== undefined) ? 'book' : undefined
}

function bookLevels(frame: Frame): BookLevel[] {
  return [
    ...sideLevels(frame['bids'] ?? frame['buys'] ?? [], SIDE_BID),
    ...sideLevels(frame['asks'] ?? frame['sells'] ?? [], SIDE_ASK),
  ]
}

function sideLevels(list: unknown, side: number): BookLevel[] {
  if (!Array.isArray(list)) throw new BadLineError(`a side that is no list: ${shown(list)}`)
  const levels = list.map((level: unknown) => {
    if (!isFrame(level)) throw new BadLineError(`no level: ${shown(level)}`)
    return { side, price: priceOf(level['price']), qty: sizeOf(level['size']) }
  })
  refusePriceTwice(levels)
  return levels
}

function priceChanges(frame: Frame): LevelChange[] {
  const list: unknown = frame['price_changes'] ?? frame['changes'] ?? [frame]
  if (!Array.isArray(list)) throw new BadLineError(`price changes that are no list: ${shown(list)}`)
  return list.map((change: unknown) => {
    if (!isFrame(change)) throw new BadLineError(`no price change: ${shown(change)}`)
    return {
      marketId: marketIdOf(frame, change),
      side: sideOf(change['side']),
      price: priceOf(change['price']),
      qty: sizeOf(change['size']),
    }
  })
}

// A token's id is a number of up to 78 digits: text, never a JSON number.
function marketIdOf(frame: Frame, part: Frame): string {
  const market = frame['market']
  const asset = part['asset_id'] ?? frame['asset_id']
  if (typeof market !== 'string' || typeof asset !== 'string' || market === '' || asset === '') {
    throw new BadLineError(`no market and asset_id: ${shown(market)}, ${shown(asset)}`)
  }
  return idOf(market, asset)
}

function sideOf(value: unknown): number {
  const side = typeof value === 'string' ? value.toUpperCase() : undefined
  if (side === 'BUY') return SIDE_BID
  if (side === 'SELL') return SIDE_ASK
  throw new BadLineError(`side is neither BUY nor SELL: ${shown(value)}`)
}

function priceOf(value: unknown): number {
  const price = scaledValue(value, PRICE_DIGITS)
  if (price === undefined || price < 0 || price > PRICE_UNITS_PER_DOLLAR) {
    throw new BadLineError(`no price from 0 to 1, or finer than 1/10000: ${shown(value)}`)
  }
  return price
}

function sizeOf(value: unknown): number {
  const size = scaledValue(value, QTY_DIGITS)
  if (size === undefined || size < 0) {
    throw new BadLineError(`no size, or finer than 1/${QTY_UNITS_PER_CONTRACT}: ${shown(value)}`)
  }
  return size
}
