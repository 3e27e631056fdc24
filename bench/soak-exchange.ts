// A loopback exchange that trades at a steady rate on its own clock until it is stopped, and stores every true change. Subscribers
// get snapshots and then every change; it does not wait for slow ones.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import type { WebSocket } from 'ws'
import { SeededRandom } from '../server/sample-data/seeded-random.ts'
import { centsOf, levelOf, sideOf, SoakTruth } from './soak-truth.ts'

const STEP_MS = 10
const FULL_CENTS = 97
/** The share of changes to a non-empty level that empty it. */
const REMOVALS = 0.5
const CONTRACTS_MAX = 50

interface Session {
  readonly socket: WebSocket
  readonly connection: number
  readonly markets: Set<number>
}

interface Command {
  readonly id: number
  readonly params: {
    readonly action?: string
    readonly channels?: readonly string[]
    readonly market_tickers?: readonly string[]
  }
}

export class SoakExchange {
  readonly truth: SoakTruth
  readonly #nowMs: () => number
  readonly #random = new SeededRandom(5_000, 'soak')
  readonly #sessions = new Set<Session>()
  readonly #server = createServer((request, response) => this.#list(request, response))
  readonly #sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false })
  #lastMicros = 0
  sentBytes = 0

  private constructor(markets: readonly string[], nowMs: () => number) {
    this.truth = new SoakTruth(markets)
    this.#nowMs = nowMs
  }

  /** @param nowMs the exchange's clock */
  static async start(markets: readonly string[], nowMs: () => number): Promise<SoakExchange> {
    const exchange = new SoakExchange(markets, nowMs)
    exchange.#server.on('upgrade', (request, socket, head) => {
      exchange.#sockets.handleUpgrade(request, socket, head, (opened) => exchange.#open(opened))
    })
    exchange.#server.listen(0, '127.0.0.1')
    await once(exchange.#server, 'listening')
    return exchange
  }

  get #address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}/trade-api`
  }

  get socketUrl(): string {
    return `ws://${this.#address}/ws/v2`
  }

  get restUrl(): string {
    return `http://${this.#address}/v2`
  }

  /** Bytes in this process that wait to be sent. */
  get unsentBytes(): number {
    return [...this.#sessions].reduce((sum, { socket }) => sum + socket.bufferedAmount, 0)
  }

  close(): void {
    this.dropConnections()
    this.#server.closeAllConnections()
    this.#server.close()
  }

  /** Terminates every connection. */
  dropConnections(): void {
    for (const { socket } of this.#sessions) socket.terminate()
    this.#sessions.clear()
  }

  /** Trades at a steady rate until the signal; catches up after delays. */
  async trade(perSecond: number, signal: AbortSignal): Promise<void> {
    const startMs = performance.now()
    for (let count = 0; !signal.aborted;) {
      const due = Math.floor(((performance.now() - startMs) / 1000) * perSecond)
      for (; count < due; count++) this.#change()
      await sleep(STEP_MS)
    }
  }

  #list(request: IncomingMessage, response: ServerResponse): void {
    const { searchParams } = new URL(request.url ?? '', 'http://exchange')
    const series = searchParams.get('series_ticker') ?? ''
    const isOpen = searchParams.get('status') === 'open'
    const tickers = this.truth.markets.filter((ticker) => ticker.startsWith(`${series}-`))
    const markets = isOpen ? tickers.map((ticker) => ({ ticker, status: 'active' })) : []
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ events: [{ event_ticker: 'E', markets }], cursor: '' }))
  }

  #open(socket: WebSocket): void {
    const session: Session = { socket, connection: this.truth.connect(), markets: new Set() }
    this.#sessions.add(session)
    socket.on('close', () => this.#sessions.delete(session))
    socket.on('error', () => this.#sessions.delete(session))
    socket.on('message', (data: Buffer) => this.#take(session, JSON.parse(data.toString('utf8')) as Command))
  }

  #take(session: Session, { id, params }: Command): void {
    const { action, channels, market_tickers: tickers = [] } = params
    const markets = tickers.map((ticker) => this.truth.markets.indexOf(ticker))
    if (channels?.includes('orderbook_delta') === false) {
      this.#send(session, JSON.stringify({ id, type: 'error', msg: { code: 5, msg: 'Unknown channel' } }))
      return
    }
    if (action === undefined)
      this.#send(
        session,
        JSON.stringify({ id, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } }),
      )
    if (action === 'delete_markets') for (const market of markets) session.markets.delete(market)
    else
      for (const market of markets)
        this.#snapshot(session, market, action === 'get_snapshot' ? id : undefined)
    if (action === 'get_snapshot') return
    if (action === 'delete_markets' || action === 'add_markets') {
      const seq = this.truth.tell(session.connection)
      this.#send(session, JSON.stringify({ id, sid: 1, seq, type: 'ok', msg: {} }))
    }
  }

  #snapshot(session: Session, market: number, id: number | undefined): void {
    session.markets.add(market)
    const levels = this.truth.levels(market)
    const leg = (side: number): string[][] =>
      levels
        .filter(([level]) => sideOf(level) === side)
        .map(([level, quantity]) => [(centsOf(level) / 100).toFixed(4), (quantity / 100).toFixed(2)])
    const msg = {
      market_ticker: this.truth.markets[market],
      ...(leg(0).length > 0 ? { yes_dollars_fp: leg(0) } : {}),
      ...(leg(1).length > 0 ? { no_dollars_fp: leg(1) } : {}),
    }
    const seq = this.truth.tell(session.connection)
    const head = id === undefined ? {} : { id }
    this.#send(session, JSON.stringify({ ...head, type: 'orderbook_snapshot', sid: 1, seq, msg }))
  }

  /** Adds to a random level of a random market, or empties it. Bids are below the middle, asks above it. */
  #change(): void {
    const { truth } = this
    const market = this.#random.below(truth.markets.length)
    const cents = 2 + this.#random.below(FULL_CENTS)
    const side = cents < 50 ? 0 : 1
    const level = levelOf(side, cents)
    const held = truth.quantity(market, level)
    const isRemoval = held > 0 && this.#random.isWithin(REMOVALS)
    const delta = isRemoval ? -held : 100 * (1 + this.#random.below(CONTRACTS_MAX))
    const micros = this.#nextMicros()
    const change = truth.change({ market, level, delta, micros })
    const ms = Math.floor(micros / 1000)
    const second = new Date(ms).toISOString().slice(0, 19)
    const time = `${second}.${String(micros % 1_000_000).padStart(6, '0')}Z`
    const msg =
      `{"market_ticker":"${truth.markets[market]}","market_id":"0445cdcb-7f7e-4a3e-9d35-0d1c6f2f7f10",` +
      `"price_dollars":"${(cents / 100).toFixed(4)}","delta_fp":"${(delta / 100).toFixed(2)}",` +
      `"side":"${side === 0 ? 'yes' : 'no'}","ts":"${time}","ts_ms":${ms}}`
    for (const session of this.#sessions) {
      if (!session.markets.has(market)) continue
      const seq = truth.tell(session.connection, change)
      this.#send(session, `{"type":"orderbook_delta","sid":1,"seq":${seq},"msg":${msg}}`)
    }
  }

  /** Microseconds that never repeat. */
  #nextMicros(): number {
    this.#lastMicros = Math.max(this.#lastMicros + 1, this.#nowMs() * 1000)
    return this.#lastMicros
  }

  #send({ socket }: Session, text: string): void {
    this.sentBytes += text.length
    socket.send(text)
  }
}
