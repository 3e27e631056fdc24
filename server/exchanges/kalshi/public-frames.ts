// Which Kalshi frames may be kept: those of public channels, answers to them, and commands without secrets. Anything not listed
// here is private: fills, orders, positions, order groups, requests for quotes, and unknown types.

import { isFrame, isReceiveTime } from '../../feed/frame.ts'
import type { Frame } from '../../feed/frame.ts'
import { TYPICAL_TYPES } from './frame.ts'

const PUBLIC_TYPES: ReadonlySet<unknown> = new Set([
  ...TYPICAL_TYPES,
  'event_fee_update',
  'multivariate_lookup',
  'multivariate_market_lifecycle',
  'error',
  // The recorder's own.
  'disconnect',
  'heartbeat',
])
const PUBLIC_CHANNELS: ReadonlySet<unknown> = new Set([
  'orderbook_delta',
  'ticker',
  'ticker_v2',
  'trade',
  'market_lifecycle',
  'market_lifecycle_v2',
  'multivariate',
  'multivariate_market_lifecycle',
])
const OWN_ORDER_KEYS: readonly string[] = ['client_order_id', 'subaccount', 'subaccount_number']
const COMMANDS: ReadonlySet<unknown> = new Set([
  'subscribe',
  'update_subscription',
  'unsubscribe',
  'list_subscriptions',
])
const COMMAND_KEYS: ReadonlySet<string> = new Set(['id', 'cmd', 'params'])
const PARAMETER_KEYS: ReadonlySet<string> = new Set([
  'channels',
  'market_ticker',
  'market_tickers',
  'market_id',
  'market_ids',
  'sid',
  'sids',
  'action',
  'use_yes_price',
  'send_initial_snapshot',
  'skip_ticker_ack',
  'shard_factor',
  'shard_key',
])

/**
 * The part of a frame that may be kept: the frame itself, a copy without the client's own orders and private channels, or
 * `undefined` if all of it is private. Pure.
 */
export function publicPartOfKalshi(frame: Frame): Frame | undefined {
  const { type } = frame
  if (type === undefined) {
    if (frame['cmd'] !== undefined) return publicCommand(frame)
    return frame['event_type'] === 'disconnect' ? frame : undefined
  }
  if (!PUBLIC_TYPES.has(type)) return undefined
  const content = frame['msg']
  if (type === 'orderbook_delta' && isFrame(content)) return withoutOwnOrder(frame, content)
  if (type === 'subscribed' && isFrame(content)) {
    const { channel } = content
    return channel === undefined || PUBLIC_CHANNELS.has(channel) ? frame : undefined
  }
  return frame
}

// A delta caused by the client's own order names that order.
function withoutOwnOrder(frame: Frame, content: Frame): Frame {
  if (!OWN_ORDER_KEYS.some((key) => content[key] !== undefined)) return frame
  const msg = Object.fromEntries(Object.entries(content).filter(([key]) => !OWN_ORDER_KEYS.includes(key)))
  return { ...frame, msg }
}

function publicCommand(frame: Frame): Frame | undefined {
  if (!COMMANDS.has(frame['cmd'])) return undefined
  for (const key in frame) if (!COMMAND_KEYS.has(key) && !isReceiveTime(key, frame[key])) return undefined
  const params = frame['params']
  if (params === undefined) return frame
  if (!isFrame(params)) return undefined
  for (const key in params) if (!PARAMETER_KEYS.has(key)) return undefined
  const { channels } = params
  if (channels === undefined) return frame
  if (!Array.isArray(channels)) return undefined
  const kept = channels.filter((channel) => PUBLIC_CHANNELS.has(channel))
  if (kept.length === channels.length) return frame
  return kept.length === 0 ? undefined : { ...frame, params: { ...params, channels: kept } }
}
