// Gives every message a time. A message that has none takes the previous one of its connection; at the start of a
// connection it waits for the first time that comes, because the last time of the connection before would be too early.

import { IMPORT_HELD_MESSAGES_MAX, IMPORT_SILENCE_MS_MAX } from '../../shared/limits.ts'
import { NS_PER_MS } from '../../shared/utc-date.ts'
import { BadLineError } from './bad-line.ts'

const SILENCE_NS_MAX = BigInt(IMPORT_SILENCE_MS_MAX) * NS_PER_MS

interface HeldItem<T> {
  readonly item: T
  readonly recvTs: bigint | undefined
}

/** Where the times of a recording stand while no message waits for one. */
export interface FrameTimingState {
  readonly lastTs: bigint | undefined
  readonly lastRecvTs: bigint
}

export class FrameTiming<T> {
  readonly #deliver: (item: T, ts: bigint, recvTs: bigint) => void
  #held: HeldItem<T>[] = []
  #lastTs: bigint | undefined
  #lastRecvTs = 0n

  /** `deliver` gets every item once, in the order in which they were pushed. */
  constructor(deliver: (item: T, ts: bigint, recvTs: bigint) => void, state?: FrameTimingState) {
    this.#deliver = deliver
    this.#lastTs = state?.lastTs
    this.#lastRecvTs = state?.lastRecvTs ?? 0n
  }

  /** Throws while messages wait: they only do in recordings without receive times. */
  state(): FrameTimingState {
    if (this.isHolding) throw new Error('messages that wait for a time cannot be kept')
    return { lastTs: this.#lastTs, lastRecvTs: this.#lastRecvTs }
  }

  /** The latest time so far; `undefined` before the first. */
  get lastTs(): bigint | undefined {
    return this.#lastTs
  }

  get lastRecvTs(): bigint {
    return this.#lastRecvTs
  }

  /** `ts` is the exchange's time, `startsConnection` whether the previous messages were another connection's. */
  push(item: T, ts: bigint | undefined, recvTs: bigint | undefined, startsConnection: boolean): void {
    const known = ts ?? recvTs
    if (known !== undefined) {
      this.release(known)
      this.#send(item, known, recvTs ?? known)
    } else if (this.#held.length === 0 && this.#lastTs !== undefined && !startsConnection) {
      this.#send(item, this.#lastTs, this.#lastTs)
    } else {
      if (this.isFull) {
        throw new BadLineError(`no time in this message nor in the ${IMPORT_HELD_MESSAGES_MAX} before it`)
      }
      this.#held.push({ item, recvTs })
    }
  }

  /** Whether an event at `ts` ends a silence too long for any book to be known through it. */
  isAfterSilence(ts: bigint): boolean {
    return this.#lastTs !== undefined && ts - this.#lastTs > SILENCE_NS_MAX
  }

  /** Whether messages wait for a time. */
  get isHolding(): boolean {
    return this.#held.length > 0
  }

  /** Whether no further message without a time can be taken. */
  get isFull(): boolean {
    return this.#held.length === IMPORT_HELD_MESSAGES_MAX
  }

  /** Delivers what still waits, at the last time known. Throws when the whole recording has none. */
  finish(): void {
    if (this.#held.length === 0) return
    if (this.#lastTs === undefined) throw new BadLineError('no message of the recording carries a time')
    this.release(this.#lastTs)
  }

  /** Delivers what waits, at `ts`. */
  release(ts: bigint): void {
    const held = this.#held
    this.#held = []
    for (const { item, recvTs } of held) this.#send(item, ts, recvTs ?? ts)
  }

  #send(item: T, ts: bigint, recvTs: bigint): void {
    this.#deliver(item, ts, recvTs)
    if (this.#lastTs === undefined || ts > this.#lastTs) this.#lastTs = ts
    if (recvTs > this.#lastRecvTs) this.#lastRecvTs = recvTs
  }
}
