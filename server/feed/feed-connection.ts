// One WebSocket connection that reconnects: it opens, listens, pings, detects silence, closes, waits and opens again, until it is
// stopped. The back-off grows with each failure; half of it is jitter, so that many recorders do not reconnect at once. A lane
// extends this class and handles the messages. Request headers, which may hold a signature, are made anew for every attempt and
// never logged.

import { WebSocket } from 'ws'
import { FEED_HANDSHAKE_TIMEOUT_MS, WAL_PAYLOAD_BYTES_MAX } from '../../shared/limits.ts'
import { type BackOff, backOffMs, FEED_BACK_OFF } from '../tasks/back-off.ts'
import type { LaneFigures, LaneLog } from './feed-lane.ts'

/** A connection that lasted this long resets the back-off. */
const FEED_STABLE_MS = 30_000
/** A connection without any message or pong for this long is closed. */
const FEED_IDLE_TIMEOUT_MS = 25_000

export interface FeedTiming {
  readonly pingMs: number
  readonly idleTimeoutMs?: number
  /** Between attempts. */
  readonly backOff?: BackOff
}

export interface FeedConnectionOptions {
  readonly url: string
  readonly headers?: () => Readonly<Record<string, string>>
  readonly timing: FeedTiming
  /** Receives every opening and closing, and the reason why a connection ended or failed. */
  readonly log: Pick<LaneLog, 'opened' | 'closed' | 'nowMs' | 'trouble'>
}

export abstract class FeedConnection {
  readonly #options: FeedConnectionOptions
  #socket: WebSocket | undefined
  #isOpen = false
  #isPaused = false
  #isStopped = false
  /** Steady time (performance.now) of the opening, and since when the connection is silent. */
  #openedMs = 0
  #signMs = 0
  /**
   * Steady time. After a pause, what is read before this time may have waited in the network: it does not show that the
   * connection is complete until now. If the connection breaks, what waited at the exchange is lost.
   */
  #lateUntilMs = 0
  #lastHeardMs = 0
  #attempts = 0
  #reason = ''
  #retry: NodeJS.Timeout | undefined
  #watch: NodeJS.Timeout | undefined
  /** Connections opened so far. */
  #connections = 0

  constructor(options: FeedConnectionOptions) {
    this.#options = options
  }

  protected abstract onOpen(): void

  /** A message as received; the receiver owns the buffer. */
  protected abstract onMessage(data: Buffer): void

  /** Called when an opened connection has ended. */
  protected onClose(): void {}

  protected ping(socket: WebSocket): void {
    socket.ping()
  }

  protected get isOpen(): boolean {
    return this.#isOpen
  }

  protected get connectionFigures(): Pick<LaneFigures, 'isConnected' | 'connections' | 'lastHeardMs'> {
    return { isConnected: this.#isOpen, connections: this.#connections, lastHeardMs: this.#lastHeardMs }
  }

  protected start(): void {
    if (this.#socket === undefined && this.#retry === undefined && !this.#isStopped) this.#connect()
  }

  /** Closes for good. `onClose` is called before it returns. */
  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#retry)
    this.#giveUp('stopped')
  }

  /** Sends if the connection is open; else returns false. */
  protected send(text: string): boolean {
    if (!this.#isOpen) return false
    this.#socket?.send(text)
    return true
  }

  /** Pauses or resumes reading. Unread data waits in the network, and then at the exchange. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    if (!this.#isOpen) return
    if (isPaused) {
      this.#lateUntilMs = Infinity
      this.#socket?.pause()
    } else {
      this.#signMs = performance.now()
      this.#lateUntilMs = this.#signMs + FEED_IDLE_TIMEOUT_MS
      this.#socket?.resume()
    }
  }

  /** Closes this connection; a new one follows. */
  protected reconnect(reason: string): void {
    this.#giveUp(reason)
  }

  #connect(): void {
    this.#retry = undefined
    this.#attempts++
    this.#reason = ''
    const socket = new WebSocket(this.#options.url, {
      headers: { ...this.#options.headers?.() },
      handshakeTimeout: FEED_HANDSHAKE_TIMEOUT_MS,
      maxPayload: WAL_PAYLOAD_BYTES_MAX,
      perMessageDeflate: false,
    })
    this.#socket = socket
    socket.on('open', () => this.#opened(socket))
    socket.on('message', (data: Buffer) => {
      if (socket !== this.#socket) return
      this.#noteHeard()
      this.onMessage(data)
    })
    for (const sign of ['ping', 'pong'] as const) {
      socket.on(sign, () => this.#noteHeard())
    }
    socket.on('unexpected-response', (request, response) => {
      this.#reason = `the handshake was answered with status ${response.statusCode}`
      response.resume()
      request.destroy()
      this.#ended(socket)
    })
    socket.on('error', (error) => {
      this.#reason ||= error.message
    })
    socket.on('close', (code) => {
      this.#reason ||= `closed with code ${code}`
      this.#ended(socket)
    })
  }

  #opened(socket: WebSocket): void {
    if (socket !== this.#socket) return
    this.#isOpen = true
    this.#connections++
    this.#openedMs = performance.now()
    this.#lateUntilMs = 0
    this.#noteHeard()
    const { timing } = this.#options
    const idleMs = timing.idleTimeoutMs ?? FEED_IDLE_TIMEOUT_MS
    this.#watch = setInterval(() => {
      // A paused connection is silent because it is not read.
      const silentMs = performance.now() - this.#signMs
      if (!this.#isPaused && silentMs > idleMs) this.#giveUp(`silent for ${idleMs} ms`)
      else if (socket.readyState === WebSocket.OPEN) this.ping(socket)
    }, timing.pingMs)
    if (this.#isPaused) this.setPaused(true)
    this.#options.log.opened()
    this.onOpen()
  }

  #noteHeard(): void {
    this.#signMs = performance.now()
    if (this.#signMs >= this.#lateUntilMs) this.#lastHeardMs = this.#options.log.nowMs()
  }

  #giveUp(reason: string): void {
    const socket = this.#socket
    if (socket === undefined) return
    this.#reason ||= reason
    this.#ended(socket)
    socket.terminate()
  }

  #ended(socket: WebSocket): void {
    if (socket !== this.#socket) return
    this.#socket = undefined
    clearInterval(this.#watch)
    const wasOpen = this.#isOpen
    this.#isOpen = false
    if (wasOpen) {
      this.onClose()
      this.#options.log.closed(this.#lastHeardMs)
    }
    if (this.#isStopped) return
    if (wasOpen && performance.now() - this.#openedMs > FEED_STABLE_MS) this.#attempts = 0
    this.#options.log.trouble(this.#reason)
    const waitMs = backOffMs(this.#options.timing.backOff ?? FEED_BACK_OFF, this.#attempts)
    this.#retry = setTimeout(() => this.#connect(), waitMs)
  }
}
