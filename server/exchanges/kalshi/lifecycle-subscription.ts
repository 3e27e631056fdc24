// The subscription to the lifecycle of all markets, which tells of new ones. It is no part of the recording, and books
// are recorded without it too.

import type { LaneLog } from '../../feed/feed-lane.ts'
import type { KalshiControl } from './control.ts'

const CHANNEL = 'market_lifecycle_v2'
/** What makes a market one to follow. */
const OPENING_EVENTS = new Set(['created', 'activated'])

export class LifecycleSubscription {
  readonly #log: Pick<LaneLog, 'announced'>
  #id: number | undefined
  #sid: number | undefined

  constructor(log: Pick<LaneLog, 'announced'>) {
    this.#log = log
  }

  /** The connection has ended. */
  reset(): void {
    this.#id = undefined
    this.#sid = undefined
  }

  get isAskedFor(): boolean {
    return this.#id !== undefined
  }

  /** The command; nobody waits for the answer. */
  command(id: number): string {
    this.#id = id
    return JSON.stringify({ id, cmd: 'subscribe', params: { channels: [CHANNEL] } })
  }

  /** True for what is no part of the recording: the answer to the command, and what follows from it. */
  take({ type, id, sid, market }: KalshiControl): boolean {
    if (id !== undefined && id === this.#id) {
      if (type === 'subscribed') this.#sid = sid
      return true
    }
    if (!type.startsWith('market_lifecycle')) return false
    if (market !== undefined && OPENING_EVENTS.has(market.event)) this.#log.announced(market.ticker)
    return sid !== undefined && sid === this.#sid
  }
}
