// A Kalshi connection with one subscription to orderbook_delta for all followed markets. It requests yes prices explicitly, adds
// and removes markets one command at a time, and requests snapshots when numbers are missing. When the exchange has ended the
// subscription, it reconnects, because the others may have ended too. Messages are logged before they are processed. A second
// subscription, to the lifecycle of all markets, announces new markets; its messages are not kept.

import { FEED_HANDSHAKE_TIMEOUT_MS } from '../../../shared/limits.ts'
import { FeedConnection } from '../../feed/feed-connection.ts'
import type { FeedTiming } from '../../feed/feed-connection.ts'
import type { FeedLane, LaneFigures, LaneLog } from '../../feed/feed-lane.ts'
import { kalshiHeaders } from './signature.ts'
import type { KalshiCredentials } from './signature.ts'
import { TERMINAL_ERROR_CODES } from './frame.ts'
import { commandText, type KalshiCommand, type KalshiControl, readKalshiControl } from './control.ts'
import { lifecycleSubscription } from './lifecycle-subscription.ts'
import { RefusedMarkets } from './refused-markets.ts'
import { missing, TradeSubscription } from './trade-subscription.ts'

export interface KalshiLaneOptions {
  readonly url: string
  readonly credentials: KalshiCredentials
  readonly log: LaneLog
  readonly timing?: Partial<FeedTiming> & { readonly repairMs?: number }
}

interface Command extends KalshiCommand {
  readonly timer: NodeJS.Timeout
}

/** The exchange answers pings. An answer shows that no earlier message is missing. */
const PING_MS = 2_000
/** The shortest time between two requests for snapshots of broken books. */
const REPAIR_INTERVAL_MS = 3_000

export class KalshiLane extends FeedConnection implements FeedLane {
  readonly #options: KalshiLaneOptions
  #wanted: ReadonlySet<string> = new Set()
  readonly #subscribed = new Set<string>()
  readonly #refused: RefusedMarkets
  #lifecycles: ReturnType<typeof lifecycleSubscription>
  readonly #trades: TradeSubscription
  /** Tickers to request together; a refused group is split in halves. */
  #groups: string[][] = []
  readonly #broken = new Set<string>()
  #sid: number | undefined
  #lastSeq: number | undefined
  #command: Command | undefined
  #nextId = 1
  #repairTimer: NodeJS.Timeout | undefined
  #lastRepairMs = 0
  #repairs = 0

  constructor(options: KalshiLaneOptions) {
    const { url, credentials, log, timing } = options
    super({
      url,
      headers: () => kalshiHeaders(credentials, 'GET', url, Date.now()),
      timing: { pingMs: PING_MS, ...timing },
      log,
    })
    this.#options = options
    this.#refused = new RefusedMarkets(log)
    this.#lifecycles = lifecycleSubscription(log)
    this.#trades = new TradeSubscription((text) => log.trouble(text))
  }

  get figures(): LaneFigures {
    return {
      ...this.connectionFigures,
      subscribed: this.#subscribed.size,
      refused: this.#refused.size,
      repairs: this.#repairs,
    }
  }

  follow(ids: ReadonlySet<string>): void {
    this.#wanted = new Set(ids)
    this.#refused.startLook(ids)
    if (this.#wanted.size > 0) this.start()
    this.#next()
  }

  repair(ids: readonly string[]): void {
    for (const id of ids) if (this.#subscribed.has(id)) this.#broken.add(id)
    this.#next()
  }

  protected override onOpen(): void {
    this.#next()
  }

  protected override onClose(): void {
    this.#subscribed.clear()
    this.#lifecycles = lifecycleSubscription(this.#options.log)
    this.#trades.reset()
    clearTimeout(this.#command?.timer)
    clearTimeout(this.#repairTimer)
    this.#repairTimer = undefined
    this.#command = undefined
    this.#groups = []
    this.#broken.clear()
    this.#sid = undefined
    this.#lastSeq = undefined
  }

  protected override onMessage(data: Buffer): void {
    const control = readKalshiControl(data)
    if (control !== undefined && this.#lifecycles.take(control)) return
    if (control !== undefined && this.#trades.take(control)) {
      this.#followTrades()
      return
    }
    this.#options.log.frame(data)
    if (control === undefined) return
    if (control.seq !== undefined && control.sid === this.#sid) this.#checkSequence(control.seq)
    this.#take(control)
  }

  // Every book of the subscription may have missed a message.
  #checkSequence(seq: number): void {
    const isBroken = this.#lastSeq !== undefined && seq > this.#lastSeq + 1
    this.#lastSeq = seq
    if (!isBroken) return
    for (const ticker of this.#subscribed) this.#broken.add(ticker)
    this.#next()
  }

  #take({ type, id, sid, code, text }: KalshiControl): void {
    const command = this.#command
    const isAnswer = command !== undefined && id === command.id
    switch (type) {
      case 'subscribed':
        if (!isAnswer || sid === undefined) return
        this.#sid = sid
        this.#done(command)
        return
      case 'ok':
        if (isAnswer) this.#done(command)
        return
      case 'orderbook_snapshot':
        // The snapshot may lack the command's id; it answers the command anyway.
        if (command?.action === 'get_snapshot' && sid === this.#sid) this.#done(command)
        return
      case 'unsubscribed':
        if (sid === this.#sid) this.reconnect('the exchange has ended the subscription')
        return
      case 'error':
        if (code !== undefined && TERMINAL_ERROR_CODES.has(code)) this.reconnect(`error ${code}: ${text}`)
        else if (isAnswer) this.#refuse(command, `error ${code}: ${text}`)
        else this.#options.log.trouble(`error ${code}: ${text}`)
    }
  }

  #done({ action, tickers }: Command): void {
    if (action === 'delete_markets') for (const ticker of tickers) this.#subscribed.delete(ticker)
    else {
      for (const ticker of tickers) {
        this.#subscribed.add(ticker)
        this.#refused.delete(ticker)
      }
    }
    if (action === 'subscribe' && !this.#lifecycles.isAskedFor)
      this.send(this.#lifecycles.command(this.#nextId++))
    this.#finishCommand()
    this.#followTrades()
  }

  /** Updates the trade subscription to the markets whose books are recorded. */
  #followTrades(): void {
    const command = this.#trades.next(this.#subscribed, this.#wanted, () => this.#nextId++)
    if (command !== undefined) this.send(command)
  }

  #finishCommand(): void {
    clearTimeout(this.#command?.timer)
    this.#command = undefined
    this.#next()
  }

  // One ticker of the group may be the reason, so try its halves.
  #refuse({ action, tickers }: Command, reason: string): void {
    if (action === 'subscribe' || action === 'add_markets') {
      if (tickers.length > 1) {
        const middle = Math.ceil(tickers.length / 2)
        this.#groups.push(tickers.slice(0, middle), tickers.slice(middle))
      } else {
        for (const ticker of tickers) this.#refused.add(ticker, reason)
      }
    } else {
      this.#options.log.trouble(`${action} was refused: ${reason}`)
      if (action === 'delete_markets') for (const ticker of tickers) this.#subscribed.delete(ticker)
    }
    this.#finishCommand()
  }

  /** Sends the next command that is due, unless one is unanswered. */
  #next(): void {
    if (!this.isOpen || this.#command !== undefined) return
    const added = this.#nextGroup()
    if (this.#sid === undefined) {
      if (added.length > 0) this.#send('subscribe', added)
      return
    }
    if (added.length > 0) {
      this.#send('add_markets', added)
      return
    }
    const removed = missing(this.#subscribed, this.#wanted)
    if (removed.length > 0) this.#send('delete_markets', removed)
    else if (this.#broken.size > 0) this.#repairNext()
  }

  #nextGroup(): string[] {
    for (let group = this.#groups.pop(); group !== undefined; group = this.#groups.pop()) {
      const wanted = group.filter((ticker) => this.#wanted.has(ticker))
      if (wanted.length > 0) return wanted
    }
    return missing(this.#wanted, this.#subscribed, this.#refused)
  }

  #repairNext(): void {
    const waitMs = this.#lastRepairMs + (this.#options.timing?.repairMs ?? REPAIR_INTERVAL_MS) - Date.now()
    if (waitMs > 0) {
      this.#repairTimer ??= setTimeout(() => {
        this.#repairTimer = undefined
        this.#next()
      }, waitMs)
      return
    }
    const tickers = missing(this.#broken)
    for (const ticker of tickers) this.#broken.delete(ticker)
    if (this.#broken.size === 0) this.#lastRepairMs = Date.now()
    this.#repairs++
    this.#send('get_snapshot', tickers)
  }

  #send(action: Command['action'], tickers: readonly string[]): void {
    const command = { id: this.#nextId++, action, tickers }
    const text = commandText(command, this.#sid, 'orderbook_delta', { use_yes_price: true })
    const timer = setTimeout(
      () => this.reconnect(`no answer to ${action} within ${FEED_HANDSHAKE_TIMEOUT_MS} ms`),
      FEED_HANDSHAKE_TIMEOUT_MS,
    )
    this.#command = { ...command, timer }
    this.#options.log.command(text)
    this.send(text)
  }
}
