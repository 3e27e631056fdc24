// Kalshi WebSocket frames → what they say, without any state. Two forms are read, also mixed in one frame: integer cents
// and contracts (until early 2026: `yes`, `no`, `price`, `delta`) and decimal strings (`*_dollars`, `*_fp`), which win
// where both are present. Prices stay on the leg they came on; which side of the book that is depends on the
// subscription.

import {
  PRICE_UNITS_PER_CENT,
  PRICE_UNITS_PER_DOLLAR,
  QTY_UNITS_PER_CONTRACT,
} from '../../../shared/lob-v1.ts'
import { NS_PER_MS } from '../../../shared/utc-date.ts'
import { BadLineError } from '../../feed/bad-line.ts'
import { refusePriceTwice } from '../../feed/price-levels.ts'
import { scaledInteger, scaledValue } from '../../feed/decimal.ts'
import { instantOf } from '../../feed/instant.ts'
import { shown } from '../../feed/bad-line.ts'
import { isFrame } from '../../feed/frame.ts'
import type { Frame } from '../../feed/frame.ts'

export interface LegLevel {
  readonly isYes: boolean
  /** 1/10000 dollar. */
  readonly price: number
  /** 1/1000000 contract; signed in a delta. */
  readonly qty: number
}

export type KalshiBody =
  | { readonly kind: 'snapshot'; readonly ticker: string; readonly levels: readonly LegLevel[] }
  | { readonly kind: 'delta'; readonly ticker: string; readonly level: LegLevel }
  /** The client's own command, if the recorder kept it. */
  | { readonly kind: 'subscribe'; readonly id: number; readonly useYesPrice: boolean | undefined }
  | { readonly kind: 'subscribed'; readonly id: number; readonly subscription: number | undefined }
  /** The complete list of a subscription's markets after a change. */
  | { readonly kind: 'following'; readonly tickers: ReadonlySet<string> }
  | { readonly kind: 'unsubscribed' }
  | { readonly kind: 'finished'; readonly ticker: string }
  /** The recorder's own mark, or an error after which the exchange sends nothing more. */
  | { readonly kind: 'disconnect' }
  /** Stands for a line that could not be read. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'other'; readonly name: string }

export interface KalshiMessage {
  readonly sid: number | undefined
  readonly seq: number | undefined
  readonly ts: bigint | undefined
  readonly body: KalshiBody
  readonly frame: Frame
  /** As the recorder wrote it. */
  receivedTs?: bigint | undefined
}

const PRICE_DIGITS = 4
const QTY_DIGITS = 6
const CENTS_MAX = PRICE_UNITS_PER_DOLLAR / PRICE_UNITS_PER_CENT
// 10: the subscription is lost; 25: the exchange's buffer ran over because the client read too slowly.
export const TERMINAL_ERROR_CODES: ReadonlySet<unknown> = new Set([10, 25])
const TYPICAL_TYPES = new Set([
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

/** The place of a line that could not be read, in the order of messages. */
export const LOST_MESSAGE: KalshiMessage = {
  sid: undefined,
  seq: undefined,
  ts: undefined,
  body: { kind: 'lost' },
  frame: {},
}

/** Whether a frame is typical of Kalshi. Frames keep their content under `msg`; commands of the client name theirs. */
export function isTypicalKalshiFrame(frame: Frame): boolean {
  const { type, cmd, msg } = frame
  if (typeof cmd === 'string') return true
  return typeof type === 'string' && TYPICAL_TYPES.has(type) && (isFrame(msg) || frame['sid'] !== undefined)
}

/** Throws BadLineError where the frame is not what its type promises. */
export function parseKalshiFrame(frame: Frame): KalshiMessage {
  const content = isFrame(frame['msg']) ? frame['msg'] : {}
  const body = parseBody(frame, content)
  const ts = timeOf(content) ?? timeOf(frame)
  // A time that cannot be read only matters where the book depends on it.
  if (typeof ts === 'string' && body.kind !== 'other') throw new BadLineError(ts)
  return {
    sid: optionalInteger(frame, 'sid'),
    seq: optionalInteger(frame, 'seq'),
    ts: typeof ts === 'string' ? undefined : ts,
    body,
    frame,
  }
}

function parseBody(frame: Frame, content: Frame): KalshiBody {
  const id = typeof frame['id'] === 'number' ? frame['id'] : 0
  switch (frame['type']) {
    case 'orderbook_snapshot':
      return { kind: 'snapshot', ticker: tickerOf(content), levels: snapshotLevels(content) }
    case 'orderbook_delta':
      return { kind: 'delta', ticker: tickerOf(content), level: deltaLevel(content) }
    case 'subscribed':
      return { kind: 'subscribed', id, subscription: optionalInteger(content, 'sid') }
    case 'ok':
      return followedMarkets(content)
    case 'unsubscribed':
      return { kind: 'unsubscribed' }
    case 'market_lifecycle':
    case 'market_lifecycle_v2':
      return FINISHED_EVENTS.has(content['event_type'])
        ? { kind: 'finished', ticker: tickerOf(content) }
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

function command(frame: Frame, id: number): KalshiBody {
  if (frame['event_type'] === 'disconnect') return { kind: 'disconnect' }
  if (frame['cmd'] !== 'subscribe') return { kind: 'other', name: nameOf(frame['cmd']) }
  const flag = isFrame(frame['params']) ? frame['params']['use_yes_price'] : undefined
  return { kind: 'subscribe', id, useYesPrice: typeof flag === 'boolean' ? flag : undefined }
}

function nameOf(type: unknown): string {
  return typeof type === 'string' ? type : 'unknown'
}

function followedMarkets(content: Frame): KalshiBody {
  const tickers: unknown = content['market_tickers']
  if (!Array.isArray(tickers)) return { kind: 'other', name: 'ok' }
  return { kind: 'following', tickers: new Set(tickers.map(String)) }
}

// An empty side is absent or null.
function snapshotLevels(content: Frame): LegLevel[] {
  return [...legLevels(content, 'yes'), ...legLevels(content, 'no')]
}

function legLevels(content: Frame, leg: 'yes' | 'no'): LegLevel[] {
  const decimal = content[`${leg}_dollars_fp`] ?? content[`${leg}_dollars`]
  const list: unknown = decimal ?? content[leg] ?? []
  if (!Array.isArray(list)) throw new BadLineError(`the ${leg} side is no list: ${shown(list)}`)
  const levels = list.map((level: unknown) => {
    if (!Array.isArray(level) || level.length !== 2) throw new BadLineError(`no level: ${shown(level)}`)
    const [priceValue, qtyValue] = level as readonly unknown[]
    const price = decimal === undefined || decimal === null ? centPrice(priceValue) : dollarPrice(priceValue)
    const qty = quantity(qtyValue)
    if (qty < 0) throw new BadLineError(`a level below zero: ${shown(level)}`)
    return { isYes: leg === 'yes', price, qty }
  })
  refusePriceTwice(levels)
  return levels
}

function deltaLevel(content: Frame): LegLevel {
  const side = content['side']
  if (side !== 'yes' && side !== 'no') throw new BadLineError(`side is neither yes nor no: ${shown(side)}`)
  const dollars = content['price_dollars']
  const price = dollars === undefined || dollars === null ? centPrice(content['price']) : dollarPrice(dollars)
  return { isYes: side === 'yes', price, qty: quantity(content['delta_fp'] ?? content['delta']) }
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
  return ticker
}

function optionalInteger(frame: Frame, name: string): number | undefined {
  const value = frame[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value
  throw new BadLineError(`${name} is no whole number: ${shown(value)}`)
}

// `ts` has microseconds or better in frames that give it as text; where it is only to the second, `ts_ms` is finer.
// Returns what is wrong as a text.
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
