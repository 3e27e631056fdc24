// A Kalshi on loopback: the WebSocket with its commands, numbers and faults, and the list of events. It stores the true books after
// every change, so that a recording can be compared with them.

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'

const SOCKET_PATH = '/trade-api/ws/v2'

interface Session {
  readonly socket: WebSocket
  sid: number
  seq: number
  readonly tickers: Set<string>
  /** The subscription to trades. */
  readonly trades: { sid: number | undefined; seq: number; readonly tickers: Set<string> }
}

interface Command {
  readonly id: number
  readonly cmd: string
  readonly params: {
    readonly action?: string
    readonly channels?: readonly string[]
    readonly market_tickers: readonly string[]
    readonly use_yes_price?: boolean
    readonly sid?: number
  }
}

export interface SentChange {
  readonly ticker: string
  /** In the form of `bookText`. */
  readonly book: string
}

export class LocalKalshi {
  /** Markets by ticker, with the status in their payload; REST lists them. */
  readonly markets = new Map<string, string>()
  readonly handshakes: IncomingHttpHeaders[] = []
  readonly commands: Command[] = []
  /** By sequence number: every subscription starts with another million, so that numbers are unique. */
  readonly changes = new Map<bigint, SentChange>()
  /** Subscriptions to these are refused. */
  readonly unknownTickers = new Set<string>()
  sentFrames = 0
  /** The frames themselves, if `isKeepingTexts`. */
  readonly sentTexts: string[] = []
  isKeepingTexts = false
  /** Status of the handshake, instead of an upgrade. */
  refuseHandshake: number | undefined
  /** Status of the list of events, instead of a list. */
  refuseList: number | undefined
  /** Delay of messages relative to their own time, milliseconds. */
  delayMs = 0
  /** Whether clients can subscribe to lifecycles. */
  hasLifecycles = true
  readonly #lifecycles = new Map<Session, number>()
  readonly #books = new Map<string, Map<string, bigint>>()
  readonly #sessions = new Set<Session>()
  readonly #server = createServer((request, response) => {
    const { searchParams } = new URL(request.url ?? '', 'http://exchange')
    if (this.refuseList !== undefined) {
      response.writeHead(this.refuseList)
      response.end('no')
      return
    }
    const isOpen = searchParams.get('status') === 'open'
    const markets = [...this.markets]
      .filter(([, status]) => (status === 'active') === isOpen)
      .map(([ticker, status]) => ({ ticker, status, open_time: '2099-01-01T00:00:00Z' }))
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ events: [{ event_ticker: 'E', markets }], cursor: '' }))
  })
  readonly #sockets = new WebSocketServer({ noServer: true })
  readonly #waiters = new Set<() => void>()
  #lastNs = 0n
  #subscriptions = 0

  static async start(t?: TestContext): Promise<LocalKalshi> {
    const exchange = new LocalKalshi()
    await exchange.#listen()
    t?.after(() => exchange.close())
    return exchange
  }

  async #listen(): Promise<void> {
    this.#server.on('upgrade', (request, socket, head) => {
      this.handshakes.push(request.headers)
      if (this.refuseHandshake !== undefined || request.url !== SOCKET_PATH) {
        socket.end(`HTTP/1.1 ${this.refuseHandshake ?? 404} No\r\nContent-Length: 0\r\n\r\n`)
        this.#changed()
        return
      }
      this.#sockets.handleUpgrade(request, socket, head, (opened) => this.#open(opened))
    })
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get #port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get socketUrl(): string {
    return `ws://127.0.0.1:${this.#port}${SOCKET_PATH}`
  }

  get restUrl(): string {
    return `http://127.0.0.1:${this.#port}/trade-api/v2`
  }

  get connections(): number {
    return this.#sessions.size
  }

  close(): void {
    for (const { socket } of this.#sessions) socket.terminate()
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** Resolves once `isReached` holds; it is checked after every client message and every connection. */
  async until(isReached: () => boolean): Promise<void> {
    while (!isReached()) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#waiters.delete(wake)
          resolve()
        }
        this.#waiters.add(wake)
      })
    }
  }

  isFollowed(ticker: string): boolean {
    return [...this.#sessions].some(({ tickers }) => tickers.has(ticker))
  }

  /** The true book in the form of `bookText`. */
  bookText(ticker: string): string {
    return [...(this.#books.get(ticker) ?? [])]
      .map(([key, qty]) => `${key}=${qty}`)
      .toSorted()
      .join(' ')
  }

  /** Adds contracts (in hundredths) to a level of the YES book; side 0 is bid. Sends it to every follower, except for a fault. */
  change(ticker: string, side: number, cents: number, hundredths: number, fault?: 'lost' | 'repeated'): void {
    const book = this.#bookOf(ticker)
    const key = `${side}:${cents * 100}`
    const qty = (book.get(key) ?? 0n) + BigInt(hundredths) * 10_000n
    if (qty < 0n) throw new Error('below zero')
    if (qty === 0n) book.delete(key)
    else book.set(key, qty)
    const ns = this.#now()
    const msg = {
      market_ticker: ticker,
      price_dollars: (cents / 100).toFixed(4),
      delta_fp: (hundredths / 100).toFixed(2),
      side: side === 0 ? 'yes' : 'no',
      ts: textOf(ns),
      ts_ms: Number(ns / 1_000_000n),
    }
    for (const session of this.#sessions) {
      if (!session.tickers.has(ticker)) continue
      session.seq++
      this.changes.set(BigInt(session.seq), { ticker, book: this.bookText(ticker) })
      if (fault === 'lost') continue
      const frame = { type: 'orderbook_delta', sid: session.sid, seq: session.seq, msg }
      this.#send(session, frame)
      if (fault === 'repeated') this.#send(session, frame)
    }
  }

  /** Replaces a book without sending any message, as if the changes had been sent before. */
  setBook(
    ticker: string,
    levels: readonly (readonly [side: number, cents: number, hundredths: number])[],
  ): void {
    const book = this.#bookOf(ticker)
    book.clear()
    for (const [side, cents, hundredths] of levels)
      book.set(`${side}:${cents * 100}`, BigInt(hundredths) * 10_000n)
  }

  /** Sends text unchanged to every client. */
  say(text: string): void {
    for (const { socket } of this.#sessions) {
      this.sentFrames++
      socket.send(text)
    }
  }

  /** Sends a recorded message to the followers of its market, with their subscription's numbers. */
  relay(message: { readonly type: string; readonly msg: { readonly market_ticker: string } }): void {
    for (const session of this.#sessions) {
      if (!session.tickers.has(message.msg.market_ticker)) continue
      this.#send(session, { type: message.type, sid: session.sid, seq: ++session.seq, msg: message.msg })
    }
  }

  /** Ends every subscription with a terminal error. */
  endSubscriptions(code: number): void {
    for (const session of this.#sessions) {
      this.#send(session, { id: 0, type: 'error', msg: { code, msg: 'subscription ended' } })
      session.tickers.clear()
      session.trades.tickers.clear()
    }
  }

  dropConnections(): void {
    for (const { socket } of this.#sessions) socket.terminate()
    this.#sessions.clear()
  }

  /** Stops answering anything, including pings, without closing. */
  freeze(): void {
    for (const { socket } of this.#sessions) socket.pause()
    this.#sessions.clear()
  }

  #open(socket: WebSocket): void {
    const session: Session = {
      socket,
      sid: 0,
      seq: 0,
      tickers: new Set(),
      trades: { sid: undefined, seq: 0, tickers: new Set() },
    }
    this.#sessions.add(session)
    socket.on('close', () => {
      this.#sessions.delete(session)
      this.#lifecycles.delete(session)
      this.#changed()
    })
    socket.on('error', () => {})
    socket.on('message', (data: Buffer) => {
      this.#take(session, JSON.parse(data.toString('utf8')) as Command)
      this.#changed()
    })
    this.#changed()
  }

  #take(session: Session, command: Command): void {
    const { id, cmd, params } = command
    if (params.channels?.includes('market_lifecycle_v2') === true) {
      this.#subscribeLifecycles(session, id)
      return
    }
    if (
      params.channels?.includes('trade') === true ||
      (params.sid !== undefined && params.sid === session.trades.sid)
    ) {
      this.#followTrades(session, command)
      return
    }
    this.commands.push(command)
    const tickers = params.market_tickers
    if (tickers.some((ticker) => this.unknownTickers.has(ticker))) {
      this.#send(session, { id, type: 'error', msg: { code: 16, msg: 'Market not found' } })
      return
    }
    if (cmd === 'subscribe') {
      session.sid++
      session.seq = 1_000_000 * this.#subscriptions++
      this.#send(session, { id, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: session.sid } })
      this.#add(session, tickers)
      return
    }
    if (params.action === 'get_snapshot') {
      for (const ticker of tickers) this.#snapshot(session, ticker, id)
      return
    }
    for (const ticker of params.action === 'delete_markets' ? tickers : []) session.tickers.delete(ticker)
    if (params.action === 'add_markets') this.#add(session, tickers)
    const msg = { market_tickers: [...session.tickers] }
    this.#send(session, { id, sid: session.sid, seq: ++session.seq, type: 'ok', msg })
  }

  get hasFollowersOfLifecycles(): boolean {
    return this.#lifecycles.size > 0
  }

  /** Sends a lifecycle event of a market to subscribed clients, in a separate subscription. */
  announce(ticker: string, event: string): void {
    for (const [session, sid] of this.#lifecycles) {
      const msg = { event_type: event, market_ticker: ticker }
      session.socket.send(JSON.stringify({ type: 'market_lifecycle_v2', sid, seq: 1, msg }))
    }
  }

  isTradeFollowed(ticker: string): boolean {
    return [...this.#sessions].some(({ trades }) => trades.tickers.has(ticker))
  }

  /** Sends a trade of the market, numbered separately; `isLost` skips a number instead. */
  trade(ticker: string, id: string, isLost = false): void {
    for (const { socket, trades } of this.#sessions) {
      if (trades.sid === undefined || !trades.tickers.has(ticker)) continue
      const [sid, seq] = [trades.sid, ++trades.seq]
      const price = {
        yes_price_dollars: '0.4650',
        count_fp: '12.50',
        taker_book_side: 'ask',
        is_block_trade: false,
      }
      const msg = { trade_id: id, market_ticker: ticker, ...price, ts_ms: Date.now() }
      if (!isLost) socket.send(JSON.stringify({ type: 'trade', sid, seq, msg }))
    }
  }

  #followTrades({ socket, trades }: Session, { id, cmd, params }: Command): void {
    for (const ticker of params.market_tickers) {
      if (params.action === 'delete_markets') trades.tickers.delete(ticker)
      else trades.tickers.add(ticker)
    }
    if (cmd === 'subscribe') trades.sid = 2_000_000
    const [sid, msg] = [trades.sid, { channel: 'trade', sid: trades.sid }]
    socket.send(
      JSON.stringify(
        cmd === 'subscribe' ? { id, type: 'subscribed', msg } : { id, sid, type: 'ok', msg: {} },
      ),
    )
  }

  #subscribeLifecycles(session: Session, id: number): void {
    if (!this.hasLifecycles) {
      session.socket.send(JSON.stringify({ id, type: 'error', msg: { code: 5, msg: 'Unknown channel' } }))
      return
    }
    const sid = 1_000_000 + session.sid
    this.#lifecycles.set(session, sid)
    const msg = { channel: 'market_lifecycle_v2', sid }
    session.socket.send(JSON.stringify({ id, type: 'subscribed', msg }))
    this.#changed()
  }

  #add(session: Session, tickers: readonly string[]): void {
    for (const ticker of tickers) {
      session.tickers.add(ticker)
      this.#snapshot(session, ticker)
    }
  }

  #snapshot(session: Session, ticker: string, id?: number): void {
    const leg = (side: number): string[][] =>
      [...this.#bookOf(ticker)]
        .filter(([key]) => key.startsWith(`${side}:`))
        .map(([key, qty]) => [(Number(key.slice(2)) / 10_000).toFixed(4), (Number(qty) / 1e6).toFixed(2)])
    const msg = {
      market_ticker: ticker,
      ...(leg(0).length > 0 ? { yes_dollars_fp: leg(0) } : {}),
      ...(leg(1).length > 0 ? { no_dollars_fp: leg(1) } : {}),
    }
    const head = id === undefined ? {} : { id }
    this.#send(session, { ...head, type: 'orderbook_snapshot', sid: session.sid, seq: ++session.seq, msg })
  }

  #send(session: Session, frame: object): void {
    this.sentFrames++
    const text = JSON.stringify(frame)
    if (this.isKeepingTexts) this.sentTexts.push(text)
    session.socket.send(text)
  }

  #bookOf(ticker: string): Map<string, bigint> {
    const book = this.#books.get(ticker) ?? new Map<string, bigint>()
    this.#books.set(ticker, book)
    return book
  }

  /** Microseconds that never repeat. */
  #now(): bigint {
    const ns = BigInt(Date.now() - this.delayMs) * 1_000_000n
    this.#lastNs = ns > this.#lastNs ? ns : this.#lastNs + 1000n
    return this.#lastNs
  }

  #changed(): void {
    for (const wake of this.#waiters) wake()
  }
}

function textOf(ns: bigint): string {
  const seconds = new Date(Number(ns / 1_000_000n)).toISOString().slice(0, 19)
  return `${seconds}.${String((ns / 1000n) % 1_000_000n).padStart(6, '0')}Z`
}
