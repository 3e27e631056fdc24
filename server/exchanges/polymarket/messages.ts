// Polymarket frames as the fold reads them.

import { EVENT_SET } from '../../../shared/lob-v1.ts'
import type { FeedBody, FeedMessage } from '../../feed/feed-message.ts'
import type { Frame } from '../../feed/frame.ts'
import { parsePolymarketFrame } from './frame.ts'
import type { PolymarketBody } from './frame.ts'

/** @throws {BadLineError} where a frame is not what its type promises */
export function readPolymarketFrame(frame: Frame): FeedMessage {
  const { ts, body } = parsePolymarketFrame(frame)
  return { sid: undefined, seq: undefined, ts, body: bodyOf(body) }
}

function bodyOf(body: PolymarketBody): FeedBody {
  switch (body.kind) {
    case 'book':
      return body
    case 'changes':
      return {
        kind: 'changes',
        event: EVENT_SET,
        changes: body.changes.map(({ marketId, level, bestBid, bestAsk }) => ({
          marketId,
          ...level,
          bestBid,
          bestAsk,
        })),
      }
    case 'left':
      return { kind: 'left', tokens: new Set(body.tokens) }
    case 'disconnect':
      return body
    case 'lost':
      return { kind: 'other', name: 'lost' }
    case 'heard':
    case 'other':
      return { kind: 'other', name: body.name }
  }
}
