// What a message clock asks about messages, and what it does with them.

/** Where the times stand while no message waits for one. */
export interface MessageClockState {
  readonly lastTs: bigint | undefined
  readonly lastRecvTs: bigint | undefined
  /** The latest of the exchange’s times. */
  readonly toldTs?: bigint | undefined
  /** By how much the last message with both times happened after its receipt, and one that was not believed, ns. */
  readonly aheadNs?: bigint | undefined
  readonly doubtedNs?: bigint | undefined
}

export interface MessageClockOptions<T> {
  /** Gets every item once, in the order in which they were pushed. */
  readonly deliver: (item: T, ts: bigint, recvTs: bigint) => void
  /** A time was set aside: `ts` (the exchange's, or the only one) or `recvTs`, by so many ns from where the message was put. */
  readonly onSetAside: (item: T, which: 'ts' | 'recvTs', byNs: bigint) => void
  /** The receive times are the recorder's own and right: nothing waits. */
  readonly trustsReceiveTimes: boolean
  /** The message follows the one before it without doubt, so that its time does not lie before that one's. */
  readonly isNext: (item: T) => boolean
  /** Numbers show that the message does not stand right before those that `waiting` holds after it, or after the last one. */
  readonly isOutOfPlace: (item: T, waiting: readonly T[]) => boolean
  /** The message changes no book: only its time counts. */
  readonly isIdle: (item: T) => boolean
  /** What the message says was known at the message before it already, or is nothing that could be known too early. */
  readonly saysNothingNew: (item: T) => boolean
  /** The message is left out: nothing tells its time. */
  readonly onLeftOut: (item: T, why: LeftOut) => void
  /** Both clocks go back by more than `backNs`: another recording begins in the same file, or its lines are out of order. */
  readonly anotherRecording: { readonly backNs: bigint; readonly onBegin: () => void }
  readonly state?: MessageClockState | undefined
}

/** Why a message has no place: nothing in its connection has a time, or its own fits none of a file out of order. */
export type LeftOut = 'timeless' | 'out of order'
