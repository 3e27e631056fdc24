// Whether a file's lines stand in the order in which they came. Recordings may stand one after the other in one file; in
// stretches of a few messages nothing tells any more whose the next number is, and such a file is refused.

// Channels of one connection may overtake each other by so much.
const BACK_NS_MAX = 5_000_000_000n

/** So often a file may go back, and once in so many messages. */
const BACKS_MAX = 8
const MESSAGES_PER_BACK_MIN = 16

export class LineOrder {
  readonly #isLive: boolean
  #name = ''
  #backs = 0
  #messages = 0
  #lastRecvTs: bigint | undefined
  /** Where a subscription's numbers were left last. */
  readonly #left = new Map<number, number>()

  /** `isLive`: messages come as they are received. */
  constructor(isLive: boolean) {
    this.#isLive = isLive
  }

  startFile(name: string): void {
    this.#name = name
    this.#backs = 0
    this.#messages = 0
    this.#lastRecvTs = undefined
    this.#left.clear()
  }

  countMessage(): void {
    this.#messages++
  }

  /** Where messages have no numbers, receipts alone tell; those of several connections may overtake each other a little. */
  countReceipt(recvTs: bigint | undefined): void {
    this.#messages++
    if (recvTs === undefined) return
    if (this.#lastRecvTs !== undefined && recvTs < this.#lastRecvTs - BACK_NS_MAX) this.#backs++
    this.#lastRecvTs = recvTs
  }

  /** What follows came before what stands before it. */
  goBack(): void {
    this.#backs++
  }

  /** A subscription's numbers do not go on: `seq` comes after `lastSeq`. They may have been left there before. */
  leave(sid: number, lastSeq: number, seq: number): void {
    if (this.#left.get(sid) === seq - 1) this.#backs++
    this.#left.set(sid, lastSeq)
  }

  /** What stands beside a message may be another connection's. */
  get goesBack(): boolean {
    return this.#backs > 0 && !this.#isLive
  }

  /** Throws at the end of a file whose lines are out of order. */
  refuseDisorder(): void {
    if (!this.goesBack || this.#backs <= BACKS_MAX) return
    if (this.#messages >= this.#backs * MESSAGES_PER_BACK_MIN) return
    throw new Error(
      `${this.#name}: it goes back ${this.#backs} times in ${this.#messages} messages: its lines are not in the order in ` +
        'which they came, or several recorders have written it at once; sort them by receive time, and import each ' +
        'recorder’s as a file of its own',
    )
  }
}
