// Polymarket trades, from `last_trade_price` and from REST. Messages have no id of the fill: a trade is identified by its row and
// its ordinal among equal rows of its transaction. Old frames lack the transaction.

import type { Aggressor } from '../../../shared/trades-v1.ts'
import { BadLineError, shown } from '../../feed/bad-line.ts'
import type { Frame } from '../../feed/frame.ts'
import { instantOf } from '../../feed/instant.ts'
import { digitsOfTime, tradePrice, tradeQuantity } from '../../feed/trade-message.ts'
import type { TradeMessage } from '../../feed/trade-message.ts'
import type { TradeReader } from '../exchange.ts'
import { idOf } from './frame.ts'

export const POLYMARKET_TRADES: TradeReader = {
  mark: '"last_trade_price"',
  ofFrame(frame) {
    if ((frame['event_type'] ?? frame['type']) !== 'last_trade_price') return undefined
    return tradeOf(frame, frame['market'], frame['asset_id'])
  },
  ofRow: (row) => tradeOf(row, row['condition_id'], row['token_id']),
}

function tradeOf(content: Frame, market: unknown, token: unknown): TradeMessage {
  const { timestamp, transaction_hash: transaction } = content
  if (typeof market !== 'string' || typeof token !== 'string' || market === '' || token === '') {
    throw new BadLineError(`no market and token of the trade: ${shown(market)}, ${shown(token)}`)
  }
  const ts = instantOf(timestamp)
  if (ts === undefined) throw new BadLineError(`timestamp is no time: ${shown(timestamp)}`)
  return {
    marketId: idOf(market, token),
    id: typeof transaction === 'string' && transaction !== '' ? `${transaction}:${token}` : null,
    isUnique: false,
    ts,
    tsDigits: digitsOfTime(timestamp),
    ...tradePrice(content['price']),
    qty: tradeQuantity(content['size']),
    aggressor: aggressorOf(content['side']),
    block: null,
  }
}

function aggressorOf(side: unknown): Aggressor {
  const text = typeof side === 'string' ? side.toUpperCase() : undefined
  return text === 'BUY' ? 'bid' : text === 'SELL' ? 'ask' : 'unknown'
}
