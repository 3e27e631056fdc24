// A Polymarket connection with up to 500 tokens. Messages have no acknowledgements and no numbers: a token counts as followed when
// its first book has arrived, and only a new connection brings a book again.

import type { WebSocket } from 'ws'
import { isFrame } from '../../feed/frame.ts'
import { parsedJson } from '../../../shared/parsed-json.ts'
import { backOffMs, vainRefreshBackOff } from '../../tasks/back-off.ts'
import { FeedConnection } from '../../feed/feed-connection.ts'
import type { FeedTiming } from '../../feed/feed-connection.ts'
import type { FeedLane, LaneFigures, LaneLog } from '../../feed/feed-lane.ts'

export interface PolymarketLaneOptions {
  readonly url: string
  readonly log: LaneLog
  readonly timing?: Partial<FeedTiming> & { readonly firstBookMs?: number; readonly refreshMs?: number }
}

/** The text ping that the documentation requires. */
const PING_MS = 10_000
/** If a token has no first book after this time, or its book is broken, the lane reconnects, at most once a REFRESH_INTERVAL_MS. */
const FIRST_BOOK_MS = 10_000
const REFRESH_INTERVAL_MS = 60_000

const PONG = Buffer.from('PONG')

export class PolymarketLane extends FeedConnection implements FeedLane {
  readonly #options: PolymarketLaneOptions
  #wanted: ReadonlySet<string> = new Set()
  /** Tokens requested on this connection, and those whose first book has not arrived. */
  readonly #asked = new Set<string>()
  readonly #awaited = new Set<string>()
  /** When the latest first book arrived, ms since the epoch. */
  #bookedMs = 0
  #check: NodeJS.Timeout | undefined
  #refreshedMs = 0
  /** Reconnects because of missing first books, since all books were last there. */
  #vainRefreshes = 0
  #repairs = 0

  constructor(options: PolymarketLaneOptions) {
    const { url, log, timing } = options
    super({ url, timing: { pingMs: PING_MS, ...timing }, log })
    this.#options = options
  }

  get figures(): LaneFigures {
    return {
      ...this.connectionFigures,
      subscribed: this.#asked.size - this.#awaited.size,
      refused: 0,
      repairs: this.#repairs,
    }
  }

  follow(ids: ReadonlySet<string>): void {
    this.#wanted = new Set(ids)
    if (this.#wanted.size > 0) this.start()
    if (!this.isOpen) return
    if (this.#asked.size === 0) {
      this.#subscribe()
      return
    }
    this.#change(
      'subscribe',
      [...this.#wanted].filter((id) => !this.#asked.has(id)),
    )
    this.#change(
      'unsubscribe',
      [...this.#asked].filter((id) => !this.#wanted.has(id)),
    )
  }

  /** `ids` are token ids. Only a new connection repairs a book, so it is not made if books have arrived after `atMs`. */
  repair(ids: readonly string[], atMs: number): void {
    if (atMs > this.#bookedMs && ids.some((id) => this.#asked.has(id) && !this.#awaited.has(id)))
      this.#refresh('a book is broken')
  }

  protected override ping(socket: WebSocket): void {
    socket.send('PING')
  }

  protected override onOpen(): void {
    this.#subscribe()
  }

  protected override onClose(): void {
    clearTimeout(this.#check)
    this.#check = undefined
    this.#asked.clear()
    this.#awaited.clear()
  }

  // The first message of a connection. Without initial_dump some tokens never get a first book.
  #subscribe(): void {
    const ids = [...this.#wanted]
    if (ids.length === 0) return
    this.send(JSON.stringify({ assets_ids: ids, type: 'market', initial_dump: true }))
    this.#await(ids)
  }

  // Some clients report that the exchange ignores changes; then the check makes a new connection.
  #change(operation: 'subscribe' | 'unsubscribe', ids: readonly string[]): void {
    if (ids.length === 0) return
    const command = { assets_ids: ids, operation, initial_dump: true }
    this.send(JSON.stringify(command))
    if (operation === 'subscribe') {
      this.#await(ids)
      return
    }
    // The exchange does not answer this. Only the logged line shows that the tokens are no longer followed.
    this.#options.log.command(JSON.stringify({ type: operation, ...command }))
    for (const id of ids) {
      this.#asked.delete(id)
      this.#awaited.delete(id)
    }
  }

  #await(ids: readonly string[]): void {
    for (const id of ids) {
      this.#asked.add(id)
      this.#awaited.add(id)
    }
    this.#checkAfter(this.#options.timing?.firstBookMs ?? FIRST_BOOK_MS)
  }

  // Reconnects while a first book is missing, at growing intervals, because each reconnect is a gap for the other tokens.
  #checkAfter(delayMs: number): void {
    this.#check ??= setTimeout(() => {
      this.#check = undefined
      if (this.#awaited.size === 0) return
      const intervalMs = backOffMs(vainRefreshBackOff(this.#refreshIntervalMs), this.#vainRefreshes + 1)
      const waitMs = this.#refreshedMs + intervalMs - Date.now()
      if (waitMs > 0) {
        this.#checkAfter(waitMs)
        return
      }
      this.#vainRefreshes++
      this.#refresh(`${this.#awaited.size} tokens have no first book`)
    }, delayMs)
  }

  get #refreshIntervalMs(): number {
    return this.#options.timing?.refreshMs ?? REFRESH_INTERVAL_MS
  }

  #refresh(reason: string): void {
    if (Date.now() - this.#refreshedMs < this.#refreshIntervalMs) return
    this.#refreshedMs = Date.now()
    this.#repairs++
    this.reconnect(reason)
  }

  protected override onMessage(data: Buffer): void {
    if (data.equals(PONG)) return
    this.#options.log.frame(data)
    if (this.#awaited.size > 0) this.#noticeBooks(data)
  }

  #noticeBooks(data: Buffer): void {
    const message = parsedJson(data.toString('utf8'))
    for (const frame of Array.isArray(message) ? message : [message]) {
      if (!isFrame(frame) || typeof frame['asset_id'] !== 'string') continue
      if (frame['bids'] ?? frame['asks'] ?? frame['buys'] ?? frame['sells'])
        if (this.#awaited.delete(frame['asset_id'])) this.#bookedMs = this.#options.log.nowMs()
    }
    if (this.#awaited.size === 0) this.#vainRefreshes = 0
  }
}
