// The subscription to the lifecycle of all markets, which announces new ones. It is not part of the recording, and books are
// recorded without it too.

import type { LaneLog } from '../../feed/feed-lane.ts'
import type { KalshiControl } from './control.ts'

const CHANNEL = 'market_lifecycle_v2'
/** Events after which a market is to be followed. */
const OPENING_EVENTS = new Set(['created', 'activated'])

/** The subscription of one connection. */
export function lifecycleSubscription(log: Pick<LaneLog, 'announced'>) {
  let askedId: number | undefined
  let ownSid: number | undefined
  return {
    get isAskedFor(): boolean {
      return askedId !== undefined
    },
    /** The subscribe command. The caller need not wait for the answer. */
    command(id: number): string {
      askedId = id
      return JSON.stringify({ id, cmd: 'subscribe', params: { channels: [CHANNEL] } })
    },
    /** True for messages that are not part of the recording: the answer to the command, and the subscription's messages. */
    take({ type, id, sid, market }: KalshiControl): boolean {
      if (id !== undefined && id === askedId) {
        if (type === 'subscribed') ownSid = sid
        return true
      }
      if (!type.startsWith('market_lifecycle')) return false
      if (market !== undefined && OPENING_EVENTS.has(market.event)) log.announced(market.ticker)
      return sid !== undefined && sid === ownSid
    },
  }
}
