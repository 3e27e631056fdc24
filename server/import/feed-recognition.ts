// Which exchange a recording comes from, by its first frames: a Polymarket file given as Kalshi's has no message that a
// decoder refuses, so it would be imported as nothing at all.

import { isFrame } from '../feed/frame.ts'
import type { Frame } from '../feed/frame.ts'
import type { LobSource } from '../../shared/lob-sources.ts'

/** Frames that are enough to tell; more of them tell no more. */
export const FRAMES_TO_RECOGNISE = 100

const KALSHI_TYPES = new Set([
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
const POLYMARKET_TYPES = new Set([
  'book',
  'price_change',
  'tick_size_change',
  'last_trade_price',
  'best_bid_ask',
  'new_market',
  'market_resolved',
])
// What makes an untyped object one of Polymarket's: its first books and oldest changes have no kind.
const POLYMARKET_CONTENT = ['bids', 'asks', 'buys', 'sells', 'price_changes', 'changes', 'price']

/**
 * The exchange that `frames`, the first of a recording in any number, look like; `unknown` where none of them is typical of
 * one exchange or some are of each. Pure; reads at most FRAMES_TO_RECOGNISE of them.
 */
export function recogniseFeed(frames: Iterable<Frame>): LobSource | 'unknown' {
  let found: LobSource | undefined
  let seen = 0
  for (const frame of frames) {
    if (seen++ >= FRAMES_TO_RECOGNISE) break
    const source = sourceOf(frame)
    if (source === undefined) continue
    if (found !== undefined && source !== found) return 'unknown'
    found = source
  }
  return found ?? 'unknown'
}

function sourceOf(frame: Frame): LobSource | undefined {
  if (isKalshi(frame)) return 'kalshi'
  return isPolymarket(frame) ? 'polymarket' : undefined
}

// Frames keep their content under `msg`; commands of the client name theirs.
function isKalshi(frame: Frame): boolean {
  const { type, cmd, msg } = frame
  if (typeof cmd === 'string') return true
  return typeof type === 'string' && KALSHI_TYPES.has(type) && (isFrame(msg) || frame['sid'] !== undefined)
}

// A token and the condition it belongs to; the client's own subscription lists tokens.
function isPolymarket(frame: Frame): boolean {
  if (Array.isArray(frame['assets_ids'])) return true
  if (typeof frame['market'] !== 'string') return false
  const type = frame['event_type'] ?? frame['type']
  if (typeof type === 'string') return POLYMARKET_TYPES.has(type)
  return type === undefined && POLYMARKET_CONTENT.some((key) => frame[key] !== undefined)
}
