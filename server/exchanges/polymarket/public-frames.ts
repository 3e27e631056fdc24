// Which Polymarket frames may be kept: those of the market channel, and commands without keys. Anything not listed here is private:
// orders and trades of the `user` channel, its subscriptions, and unknown types.

import { type Frame, isReceiveTime } from '../../feed/frame.ts'
import { TYPICAL_TYPES } from './frame.ts'

const PUBLIC_TYPES: ReadonlySet<unknown> = new Set([
  ...TYPICAL_TYPES,
  // The recorder's own.
  'disconnect',
  'heartbeat',
])
const COMMAND_KEYS: ReadonlySet<string> = new Set([
  'assets_ids',
  'type',
  'operation',
  'initial_dump',
  'level',
  'custom_feature_enabled',
])
const COMMAND_TYPES: ReadonlySet<unknown> = new Set([undefined, 'market', 'subscribe', 'unsubscribe'])
/** Members of the first books and the oldest changes, which have no type. */
const UNTYPED_CONTENT = ['bids', 'asks', 'buys', 'sells', 'price_changes', 'changes']
/** Members that identify the owner of an order; no public frame has them. */
const OWNER_KEYS = ['owner', 'maker_orders', 'order_owner', 'trade_owner', 'auth', 'apiKey']

/** The frame itself, or `undefined` if it is private. Pure. */
export function publicPartOfPolymarket(frame: Frame): Frame | undefined {
  if (frame['assets_ids'] !== undefined && frame['event_type'] === undefined) {
    return isPublicCommand(frame) ? frame : undefined
  }
  const type = frame['event_type'] ?? frame['type']
  if (type !== undefined ? !PUBLIC_TYPES.has(type) : !isUntypedBookOrChange(frame)) return undefined
  for (const key of OWNER_KEYS) if (frame[key] !== undefined) return undefined
  return frame
}

function isUntypedBookOrChange(frame: Frame): boolean {
  return UNTYPED_CONTENT.some((key) => frame[key] !== undefined)
}

// new_market lists tokens too, but has an event_type.
function isPublicCommand(frame: Frame): boolean {
  if (!Array.isArray(frame['assets_ids']) || !COMMAND_TYPES.has(frame['type'])) return false
  for (const key in frame) if (!COMMAND_KEYS.has(key) && !isReceiveTime(key, frame[key])) return false
  return true
}
