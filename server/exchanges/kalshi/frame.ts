// Kalshi WebSocket frames → messages for the fold. Two forms are read, also mixed in one frame: integer cents and contracts (until
// early 2026: `yes`, `no`, `price`, `delta`) and decimal strings (`*_dollars`, `*_fp`), which take precedence. Bids of `yes` are
// bids, and bids of `no` are asks with the price of their leg; which price of the book that is depends on the subscription.

import {
  EVENT_ADD,
  PRICE_UNITS_PER_CENT,
  PRICE_UNITS_PER_DOLLAR,
  QTY_UNITS_PER_CONTRACT,
  SIDE_ASK,
  SIDE_BID,
} from '../../../shared/lob-v1.ts'
import { NS_PER_MS } from '../../../shared/utc-date.ts'
import { BadLineError, shown } from '../../feed/bad-line.ts'
import { scaledInteger, scaledValue } from '../../feed/decimal.ts'
import type { FeedBody, FeedMessage, LevelChange } from '../../feed/feed-message.ts'
import { isFrame } from '../../feed/frame.ts'
import type { Frame } from '../../feed/frame.ts'
import { instantOf } from '../../feed/instant.ts'
import { refusePriceTwice } from '../../feed/price-levels.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { knownIds } from '../known-ids.ts'

/** The id of a market. */
export const idOf = knownIds((ticker) => ticker)

const PRICE_DIGITS = 4
const QTY_DIGITS = 6
const CENTS_MAX = PRICE_UNITS_PER_DOLLAR / PRICE_UNITS_PER_CENT
// 10: the subscription is lost; 25: the exchange's buffer overflowed because the client read too slowly.
export const TERMINAL_ERROR_CODES: ReadonlySet<unknown> = new Set([10, 25])
/** All of these types are public. */
export const TYPICAL_TYPES: ReadonlySet<string> = new Set([
  'orderbook_snapshot',
  'orderbook_delta',
  'ticker',
  'ticker_v2',
  'trade',
  'market_lifecycle',
  'market_lifecycle_v2',
  'event_lifecycle',
  'subscribed',
  'unsubscribed',
  'ok',
])
const FINISHED_EVENTS = new Set<unknown>(['determined', 'settled'])

/** Whether a frame is typical of Kalshi. Frames have their content under `msg`; the client's commands have `cmd`. */
export function isTypicalKalshiFrame(frame: Frame): boolean {
  const { type, cmd, msg } = frame
  if (typeof cmd === 'string') return true
  return typeof type === 'string' && TYPICAL_TYPES.has(type) && (isFrame(msg) || frame['sid'] !== undefined)
}

/** @throws {BadLineError} for a frame that does not match its type */
export function readKalshiFrame(frame: Frame): FeedMessage {
  const content = isFrame(frame['msg']) ? frame['msg'] : {}
  const body = parseBody(frame, content)
  const ts = timeOf(content) ?? timeOf(frame)
  // A time that cannot be read matters only if the book depends on it.
  if (typeof ts === 'string' && body.kind !== 'other') throw new BadLineError(ts)
  return {
    sid: optionalInteger(frame, 'sid'),
    seq: optionalInteger(frame, 'seq'),
    ts: typeof ts === 'string' ? undefined : ts,
    body,
  }
}

function parseBody(frame: Frame, content: Frame): FeedBody {
  const id = typeof frame['id'] === 'number' ? frame['id'] : 0
  switch (frame['type']) {
    case 'orderbook_snapshot':
      return { kind: 'book', marketId: tickerOf(content), levels: snapshotLevels(content) }
    case 'orderbook_delta':
      return { kind: 'changes', event: EVENT_ADD, changes: [deltaOf(content)] }
    case 'subscribed':
      return { kind: 'subscribed', id, subscription: optionalInteger(content, 'sid') }
    case 'ok':
      return followedMarkets(content)
    case 'unsubscribed':
      return { kind: 'unsubscribed' }
    case 'market_lifecycle':
    case 'market_lifecycle_v2':
      return FINISHED_EVENTS.has(content['event_type'])
        ? { kind: 'finished', marketId: tickerOf(content) }
        : { kind: 'other', name: frame['type'] }
    case 'error':
      return TERMINAL_ERROR_CODES.has(content['code'])
        ? { kind: 'disconnect' }
        : { kind: 'other', name: 'error' }
    case 'disconnect':
      return { kind: 'disconnect' }
    case undefined:
      return command(frame, id)
    default:
      return { kind: 'other', name: nameOf(frame['type']) }
  }
}

function command(frame: Frame, id: number): FeedBody {
  if (frame['event_type'] === 'disconnect') return { kind: 'disconnect' }
  if (frame['cmd'] !== 'subscribe') return { kind: 'other', name: nameOf(frame['cmd']) }
  const flag = isFrame(frame['params']) ? frame['params']['use_yes_price'] : undefined
  return { kind: 'subscribe', id, useYesPrice: typeof flag === 'boolean' ? flag : undefined }
}

function nameOf(type: unknown): string {
  return typeof type === 'string' ? type : 'unknown'
}

function followedMarkets(content: Frame): FeedBody {
  const tickers: unknown = content['market_tickers']
  if (!Array.isArray(tickers)) return { kind: 'other', name: 'ok' }
  return { kind: 'following', marketIds: new Set(tickers.map(String)) }
}

// An empty side is absent or null.
function snapshotLevels(content: Frame): BookLevel[] {
  return [...legLevels(content, 'yes'), ...legLevels(content, 'no')]
}

function legLevels(content: Frame, leg: 'yes' | 'no'): BookLevel[] {
  const decimal = content[`${leg}_dollars_fp`] ?? content[`${leg}_dollars`]
  const list: unknown = decimal ?? content[leg] ?? []
  if (!Array.isArray(list)) throw new BadLineError(`the ${leg} side is no list: ${shown(list)}`)
  const levels = list.map((level: unknown) => {
    if (!Array.isArray(level) || level.length !== 2) throw new BadLineError(`no level: ${shown(level)}`)
    const [priceValue, qtyValue] = level as readonly unknown[]
    const price = decimal === undefined || decimal === null ? centPrice(priceValue) : dollarPrice(priceValue)
    const qty = quantity(qtyValue)
    if (qty < 0) throw new BadLineError(`a level below zero: ${shown(level)}`)
    return { side: leg === 'yes' ? SIDE_BID : SIDE_ASK, price, qty }
  })
  refusePriceTwice(levels)
  return levels
}

function deltaOf(content: Frame): LevelChange {
  const marketId = tickerOf(content)
  const side = content['side']
  if (side !== 'yes' && side !== 'no') throw new BadLineError(`side is neither yes nor no: ${shown(side)}`)
  const dollars = content['price_dollars']
  const price = dollars === undefined || dollars === null ? centPrice(content['price']) : dollarPrice(dollars)
  const qty = quantity(content['delta_fp'] ?? content['delta'])
  return { marketId, side: side === 'yes' ? SIDE_BID : SIDE_ASK, price, qty }
}

function dollarPrice(value: unknown): number {
  const price = typeof value === 'string' ? scaledInteger(value, PRICE_DIGITS) : undefined
  if (price === undefined || price < 0 || price > PRICE_UNITS_PER_DOLLAR) {
    throw new BadLineError(`no price in dollars, or finer than 1/10000: ${shown(value)}`)
  }
  return price
}

function centPrice(value: unknown): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > CENTS_MAX) {
    throw new BadLineError(`no price in whole cents: ${shown(value)}`)
  }
  return value * PRICE_UNITS_PER_CENT
}

function quantity(value: unknown): number {
  const qty = scaledValue(value, QTY_DIGITS)
  if (qty === undefined) {
    throw new BadLineError(`no quantity, or finer than 1/${QTY_UNITS_PER_CONTRACT}: ${shown(value)}`)
  }
  return qty
}

function tickerOf(content: Frame): string {
  const ticker = content['market_ticker']
  if (typeof ticker !== 'string') throw new BadLineError(`no market_ticker: ${shown(ticker)}`)
  return idOf(ticker, ticker)
}

function optionalInteger(frame: Frame, name: string): number | undefined {
  const value = frame[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new BadLineError(`${name} is no whole number: ${shown(value)}`)
}

// If `ts` is text, it has microseconds or better. If it has only seconds, `ts_ms` is more precise. Returns an error as text.
function timeOf(content: Frame): bigint | string | undefined {
  const { ts, ts_ms: tsMs } = content
  const hasMs = tsMs !== undefined && tsMs !== null
  if (hasMs && !(typeof ts === 'string' && ts.includes('.'))) {
    const isMs = typeof tsMs === 'number' && Number.isSafeInteger(tsMs) && tsMs >= 0
    return isMs ? BigInt(tsMs) * NS_PER_MS : `ts_ms is no time: ${shown(tsMs)}`
  }
  if (ts === undefined || ts === null) return undefined
  return instantOf(ts) ?? `ts is no time: ${shown(ts)}`
}
