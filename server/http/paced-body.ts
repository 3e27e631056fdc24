// A body that waits for its client to take something of it, and cuts off one that stalls. uWebSockets tells of new room once,
// and aborts the connection within some 10 s after a write that the kernel did not take, unless another one follows: so
// while the socket is full it is offered something at every writable event and every few seconds. Over node:http an offer
// only looks whether the kernel has taken the piece in hand.

import { ConnectionLoss, type ConnectionLossReason } from './exchange.ts'
import type { ReaderPace } from './reader-pace.ts'

/** How often a stalled stream offers the socket something, which also keeps uWebSockets' own 10 s timer off. */
export const STALL_PROBE_MS = 4_000

interface Waiter {
  resolve(): void
  reject(error: ConnectionLoss): void
}

export abstract class PacedBody {
  protected readonly pace: ReaderPace
  readonly #close: () => void
  readonly #stallTimeoutMs: number
  #waiter: Waiter | undefined
  #probeTimer: NodeJS.Timeout | undefined
  /** Time without a sign that the client takes anything. */
  #quietMs = 0
  #loss: ConnectionLoss | undefined

  constructor(close: () => void, stallTimeoutMs: number, pace: ReaderPace) {
    this.#close = close
    this.#stallTimeoutMs = stallTimeoutMs
    this.pace = pace
  }

  /** Writes something; true when the body may go on. */
  protected abstract offer(): boolean

  /** Throws when the connection is lost. */
  protected assertOpen(): void {
    if (this.#loss !== undefined) throw this.#loss
  }

  /** Resolves when an offer has said so. Rejects with ConnectionLoss. */
  protected async wait(): Promise<void> {
    this.assertOpen()
    this.pace.beginWait()
    await new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject }
      this.#armProbe()
    })
    this.pace.endWait()
  }

  /** The client has taken something. */
  protected noteProgress(): void {
    this.#quietMs = 0
  }

  /** The socket has room again. */
  onWritable(): void {
    this.#quietMs = 0
    if (this.#waiter !== undefined) this.#probe()
  }

  /** The connection is lost: whoever waits for it learns why. */
  abort(reason: ConnectionLossReason): void {
    this.#loss ??= new ConnectionLoss(reason)
    clearTimeout(this.#probeTimer)
    this.#waiter?.reject(this.#loss)
    this.#waiter = undefined
  }

  get slowInMs(): number {
    return this.pace.slowInMs
  }

  displace(): void {
    this.#cutOff('displaced')
  }

  #cutOff(reason: ConnectionLossReason): void {
    this.abort(reason)
    this.#close()
  }

  #armProbe(): void {
    const delayMs = Math.min(STALL_PROBE_MS, this.#stallTimeoutMs - this.#quietMs)
    this.#probeTimer = setTimeout(() => {
      this.#quietMs += delayMs
      if (this.#quietMs >= this.#stallTimeoutMs) this.#cutOff('stalled')
      else this.#probe()
    }, delayMs)
  }

  #probe(): void {
    clearTimeout(this.#probeTimer)
    if (this.offer()) {
      this.#waiter?.resolve()
      this.#waiter = undefined
    } else this.#armProbe()
  }
}
