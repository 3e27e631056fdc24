// Kalshi frames as the fold reads them. Prices stay on the leg they came on, bids of `yes` as bids and bids of `no` as asks;
// which price of the book an ask is depends on the subscription.

import { EVENT_ADD, SIDE_ASK, SIDE_BID } from '../../../shared/lob-v1.ts'
import type { FeedBody, FeedMessage } from '../../feed/feed-message.ts'
import type { Frame } from '../../feed/frame.ts'
import type { BookLevel } from '../../lake/exact-book.ts'
import { parseKalshiFrame } from './frame.ts'
import type { KalshiBody, LegLevel } from './frame.ts'

/** @throws {BadLineError} where a frame is not what its type promises */
export function readKalshiFrame(frame: Frame): FeedMessage {
  const { sid, seq, ts, body } = parseKalshiFrame(frame)
  return { sid, seq, ts, body: bodyOf(body) }
}

function bodyOf(body: KalshiBody): FeedBody {
  switch (body.kind) {
    case 'snapshot':
      return { kind: 'book', marketId: body.ticker, levels: body.levels.map(sided) }
    case 'delta':
      return { kind: 'changes', event: EVENT_ADD, changes: [{ marketId: body.ticker, ...sided(body.level) }] }
    case 'following':
      return { kind: 'following', marketIds: body.tickers }
    case 'finished':
      return { kind: 'finished', marketId: body.ticker }
    case 'lost':
      return { kind: 'other', name: 'lost' }
    default:
      return body
  }
}

function sided({ isYes, price, qty }: LegLevel): BookLevel {
  return { side: isYes ? SIDE_BID : SIDE_ASK, price, qty }
}
