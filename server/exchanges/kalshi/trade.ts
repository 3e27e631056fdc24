// Kalshi trades, from the `trade` channel and from REST. Frames of 2026 have decimal strings, milliseconds and the taker's side of
// the book; older ones have integer cents and contracts, seconds and the taker's leg. A row of REST has its time as text.

import { PRICE_UNITS_PER_CENT } from '../../../shared/lob-v1.ts'
import { NS_PER_MS } from '../../../shared/utc-date.ts'
import type { Aggressor } from '../../../shared/trades-v1.ts'
import { BadLineError, shown } from '../../feed/bad-line.ts'
import { isFrame } from '../../feed/frame.ts'
import type { Frame } from '../../feed/frame.ts'
import { instantOf } from '../../feed/instant.ts'
import { digitsOfTime, tradePrice, tradeQuantity } from '../../feed/trade-message.ts'
import type { TradeMessage } from '../../feed/trade-message.ts'
import type { TradeReader } from '../exchange.ts'
import { idOf } from './frame.ts'

const MS_DIGITS = 3
const US_DIGITS = 6
const CENTS_MAX = 100

export const KALSHI_TRADES: TradeReader = {
  mark: '"trade_id"',
  ofFrame: (frame) =>
    frame['type'] === 'trade' && isFrame(frame['msg']) ? tradeOf(frame['msg']) : undefined,
  ofRow: tradeOf,
}

function tradeOf(content: Frame): TradeMessage {
  const { trade_id: id, is_block_trade: block } = content
  const ticker = content['market_ticker'] ?? content['ticker']
  if (typeof ticker !== 'string' || ticker === '')
    throw new BadLineError(`no market_ticker: ${shown(ticker)}`)
  if (typeof id !== 'string' || id === '') throw new BadLineError(`no trade_id: ${shown(id)}`)
  return {
    marketId: idOf(ticker, ticker),
    id,
    isUnique: true,
    ...timeOf(content),
    ...priceOf(content),
    qty: tradeQuantity(content['count_fp'] ?? content['count']),
    aggressor: aggressorOf(content),
    block: typeof block === 'boolean' ? block : null,
  }
}

// The most precise time counts: created_time has microseconds, ts_ms milliseconds, ts mostly seconds.
function timeOf({ created_time: created, ts_ms: tsMs, ts }: Frame): Pick<TradeMessage, 'ts' | 'tsDigits'> {
  const createdTs = created === undefined || created === null ? undefined : instantOf(created)
  if (createdTs !== undefined) return { ts: createdTs, tsDigits: Math.max(US_DIGITS, digitsOfTime(created)) }
  if (typeof ts !== 'string' && typeof tsMs === 'number' && Number.isSafeInteger(tsMs) && tsMs >= 0)
    return { ts: BigInt(tsMs) * NS_PER_MS, tsDigits: MS_DIGITS }
  const time = instantOf(ts ?? tsMs)
  if (time === undefined) throw new BadLineError(`no time of the trade: ${shown(ts ?? tsMs ?? created)}`)
  return { ts: time, tsDigits: digitsOfTime(ts ?? tsMs) }
}

function priceOf(content: Frame): Pick<TradeMessage, 'price' | 'isRounded'> {
  const dollars = content['yes_price_dollars'] ?? content['yes_price_fp']
  if (dollars !== undefined && dollars !== null) return tradePrice(dollars)
  const cents = content['yes_price']
  if (typeof cents === 'number' && Number.isInteger(cents) && cents >= 0 && cents <= CENTS_MAX)
    return { price: cents * PRICE_UNITS_PER_CENT, isRounded: false }
  throw new BadLineError(`no price in whole cents: ${shown(cents)}`)
}

function aggressorOf(content: Frame): Aggressor {
  const side = content['taker_book_side']
  if (side === 'bid' || side === 'ask') return side
  const leg = content['taker_outcome_side'] ?? content['taker_side']
  return leg === 'yes' ? 'bid' : leg === 'no' ? 'ask' : 'unknown'
}
