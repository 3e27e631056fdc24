// Waits for a client to take something of its answer, and cuts off one that stalls. uWebSockets tells of new room once,
// and aborts the connection within some 10 s after a write that the kernel did not take, unless another one follows: so
// while the socket is full it is offered something at every writable event and every few seconds.

import { ConnectionLoss, type ConnectionLossReason } from './exchange.ts'
import type { ReaderPace } from './reader-pace.ts'

/** How often a stalled stream offers the socket something, which also keeps uWebSockets' own 10 s timer off. */
export const STALL_PROBE_MS = 4_000

interface Waiter {
  resolve(): void
  reject(error: ConnectionLoss): void
}

export interface RoomWaitOptions {
  /** Writes something; true when the body may go on. */
  readonly offer: () => boolean
  readonly close: () => void
  readonly stallTimeoutMs: number
  readonly pace: ReaderPace
}

export class RoomWait {
  readonly #options: RoomWaitOptions
  #waiter: Waiter | undefined
  #probeTimer: NodeJS.Timeout | undefined
  /** Time without a sign that the client takes anything. */
  #quietMs = 0
  #loss: ConnectionLoss | undefined

  constructor(options: RoomWaitOptions) {
    this.#options = options
  }

  /** Throws when the connection is lost. */
  assertOpen(): void {
    if (this.#loss !== undefined) throw this.#loss
  }

  /** Resolves when an offer has said so. Rejects with ConnectionLoss. */
  async wait(): Promise<void> {
    this.assertOpen()
    this.#options.pace.beginWait()
    await new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject }
      this.#armProbe()
    })
    this.#options.pace.endWait()
  }

  /** The client has taken something. */
  noteProgress(): void {
    this.#quietMs = 0
  }

  /** The socket has room again. */
  onWritable(): void {
    this.#quietMs = 0
    if (this.#waiter !== undefined) this.#offer()
  }

  /** The connection is lost: whoever waits for it learns why. */
  abort(reason: ConnectionLossReason): void {
    this.#loss ??= new ConnectionLoss(reason)
    clearTimeout(this.#probeTimer)
    this.#waiter?.reject(this.#loss)
    this.#waiter = undefined
  }

  cutOff(reason: ConnectionLossReason): void {
    this.abort(reason)
    this.#options.close()
  }

  #armProbe(): void {
    const { stallTimeoutMs } = this.#options
    const delayMs = Math.min(STALL_PROBE_MS, stallTimeoutMs - this.#quietMs)
    this.#probeTimer = setTimeout(() => {
      this.#quietMs += delayMs
      if (this.#quietMs >= stallTimeoutMs) this.cutOff('stalled')
      else this.#offer()
    }, delayMs)
  }

  #offer(): void {
    clearTimeout(this.#probeTimer)
    if (this.#options.offer()) {
      this.#waiter?.resolve()
      this.#waiter = undefined
    } else this.#armProbe()
  }
}
