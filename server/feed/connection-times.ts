// The latest times of a connection's messages: what the next one's are compared with.

import { later } from '../../shared/utc-date.ts'
import type { MessageClockState } from './message-clock-options.ts'
import { BACK_NS_MAX, isAheadAlone, notNegative } from './recorder-clock.ts'

export class ConnectionTimes {
  #lastTs: bigint | undefined
  #lastRecvTs: bigint | undefined
  /** A receipt by a clock that is ahead would hide that the exchange's times are right. */
  #toldTs: bigint | undefined
  #aheadNs: bigint | undefined
  /** By how much the message before happened after its receipt, which was not believed. */
  #doubtedNs: bigint | undefined
  #beforeTs: bigint | undefined
  #isInOrder = true

  constructor(state: MessageClockState | undefined) {
    this.#lastTs = state?.lastTs
    this.#lastRecvTs = state?.lastRecvTs
    this.#toldTs = state?.toldTs
    this.#aheadNs = state?.aheadNs
    this.#doubtedNs = state?.doubtedNs
  }

  state(): MessageClockState {
    return {
      lastTs: this.#lastTs,
      lastRecvTs: this.#lastRecvTs,
      toldTs: this.#toldTs,
      aheadNs: this.#aheadNs,
      doubtedNs: this.#doubtedNs,
    }
  }

  /** The latest times in use; undefined in a connection until it has told one. */
  get lastTs(): bigint | undefined {
    return this.#lastTs
  }

  get lastRecvTs(): bigint | undefined {
    return this.#lastRecvTs
  }

  /** The latest receipt of the connections before. */
  get beforeTs(): bigint | undefined {
    return this.#beforeTs
  }

  /** By how much the last message with both times happened after its receipt, ns. */
  get aheadNs(): bigint | undefined {
    return this.#aheadNs
  }

  /** Whether receipts have come in their order so far: where they have not, neighbours tell nothing of a doubtful time. */
  get isInOrder(): boolean {
    return this.#isInOrder
  }

  /** Another connection begins. */
  forget(): void {
    this.#beforeTs = later(this.#lastRecvTs, this.#beforeTs)
    this.#lastTs = undefined
    this.#toldTs = undefined
    this.#aheadNs = undefined
    this.#doubtedNs = undefined
    this.#lastRecvTs = undefined
  }

  /** A message stands at `ts` and was received at `recvTs`. */
  add(ts: bigint, recvTs: bigint): void {
    const latest = later(this.#lastRecvTs, this.#beforeTs)
    if (latest !== undefined && recvTs < latest - BACK_NS_MAX) this.#isInOrder = false
    this.#lastTs = later(ts, this.#lastTs)
    this.#lastRecvTs = later(recvTs, this.#lastRecvTs)
  }

  /** Both times of a message are believed. */
  tell(ts: bigint, recvTs: bigint): void {
    this.#toldTs = later(ts, this.#toldTs)
    this.#aheadNs = ts - recvTs
    this.#doubtedNs = undefined
  }

  /** Whether a message happened well before those that were told. */
  isBack(ts: bigint): boolean {
    return this.#toldTs !== undefined && ts < this.#toldTs - BACK_NS_MAX
  }

  /** Whether a message happened so long after its receipt as none of those around it. */
  isAhead(ts: bigint, recvTs: bigint): boolean {
    return this.#isInOrder && isAheadAlone(ts - recvTs, this.#aheadNs)
  }

  /**
   * Whether a message that is ahead is the first of its connection to say so: a recorder's own clock goes evenly, and is
   * not behind all at once, but for what the next message says again.
   */
  isAheadFirst(ts: bigint, recvTs: bigint): boolean {
    const doubtedNs = this.#doubtedNs
    this.#doubtedNs = ts - recvTs
    return this.#aheadNs !== undefined && (doubtedNs === undefined || ts - recvTs < doubtedNs - BACK_NS_MAX)
  }

  /** When something happened that was received then, by what the clock was worth before it. */
  happenedAt(recvTs: bigint): bigint {
    return recvTs + notNegative(this.#aheadNs)
  }
}
