// Gives every message of a file a time, and sees to it that one wrong clock moves nothing else. A message has the
// exchange's time, the recorder's, both or none. Where both are given and far apart, the one that leaves the course of
// the messages around it is set aside; where there is one, a time that leaps ahead and back again is. A message without
// any time takes the previous one's, or waits for the first.

import { BadLineError } from './bad-line.ts'

/** Messages held back until the next time tells what theirs is. */
export const HELD_MESSAGES_MAX = 10_000
// An exchange's time is never after the receipt but for the clocks' difference; it may be a slow connection's before.
const AHEAD_NS_MAX = 120_000_000_000n
const BEHIND_NS_MAX = 600_000_000_000n
// A file may begin with what was heard so long before its first message: the end of a silence, or of a connection.
const HEARD_BEFORE_NS_MAX = 3_600_000_000_000n
// Channels of one connection may overtake each other by so much.
const BACK_NS_MAX = 5_000_000_000n
// A time so far ahead of the one before, with nothing after it to bear it out, is none: 31 days.
const LEAP_NS_MAX = 2_678_400_000_000_000n

/** Where the times stand while no message waits for one. */
export interface MessageClockState {
  readonly lastTs: bigint | undefined
  readonly lastRecvTs: bigint | undefined
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
  /** The message changes no book: only its time counts. */
  readonly isIdle: (item: T) => boolean
  readonly state?: MessageClockState | undefined
}

interface Held<T> {
  readonly item: T
  readonly ts: bigint | undefined
  readonly recvTs: bigint | undefined
}

export class MessageClock<T> {
  readonly #options: MessageClockOptions<T>
  #held: Held<T>[] = []
  /** The latest times in use; those of one clock are undefined until it has spoken. */
  #lastTs: bigint | undefined
  #lastRecvTs: bigint | undefined

  constructor(options: MessageClockOptions<T>) {
    this.#options = options
    this.#lastTs = options.state?.lastTs
    this.#lastRecvTs = options.state?.lastRecvTs
  }

  /** Throws while messages wait. */
  state(): MessageClockState {
    if (this.isHolding) throw new Error('messages that wait for a time cannot be kept')
    return { lastTs: this.#lastTs, lastRecvTs: this.#lastRecvTs }
  }

  get isHolding(): boolean {
    return this.#held.length > 0
  }

  get lastTs(): bigint | undefined {
    return this.#lastTs
  }

  get lastRecvTs(): bigint | undefined {
    return this.#lastRecvTs
  }

  /** `startsConnection`: the messages before are another connection's, and their times say nothing. */
  push(item: T, ts: bigint | undefined, recvTs: bigint | undefined, startsConnection: boolean): void {
    if (startsConnection) this.#startConnection()
    const entry = { item, ts, recvTs }
    const known = ts ?? recvTs
    if (known === undefined) {
      if (this.#held.length === 0 && this.#lastTs !== undefined)
        this.#deliver(item, this.#lastTs, this.#lastTs)
      else this.#hold(entry)
      return
    }
    if (this.#held.length > 0) this.#release(entry)
    if (this.#isDoubtful(entry)) this.#hold(entry)
    else this.#take(entry)
  }

  /** Delivers what still waits. Throws when the whole recording has no time. */
  finish(): void {
    if (this.#held.length === 0) return
    const timed = this.#held.find(({ ts, recvTs }) => (ts ?? recvTs) !== undefined)
    if (timed === undefined && this.#lastTs === undefined) {
      throw new BadLineError('no message of the recording carries a time')
    }
    this.#release(undefined)
  }

  #startConnection(): void {
    // A connection that told no time at all waits on, with the one that follows it.
    if (firstTime(this.#held) !== undefined) this.#release(undefined)
    this.#lastTs = undefined
    this.#lastRecvTs = undefined
  }

  #hold(entry: Held<T>): void {
    if (this.#held.length === HELD_MESSAGES_MAX) {
      throw new BadLineError(`no time in this message nor in the ${HELD_MESSAGES_MAX} before it`)
    }
    this.#held.push(entry)
  }

  /** Whether only the next message can tell what this one's time is worth. */
  #isDoubtful({ item, ts, recvTs }: Held<T>): boolean {
    if (this.#options.trustsReceiveTimes) return false
    if (ts !== undefined && recvTs !== undefined) return this.#lastTs === undefined && areApart(ts, recvTs)
    if (this.#lastTs === undefined) return this.#options.isIdle(item)
    return (ts ?? recvTs!) > this.#lastTs + BEHIND_NS_MAX
  }

  /** Delivers what waits, now that `next` (or nothing more) is known. */
  #release(next: Held<T> | undefined): void {
    const held = this.#held
    this.#held = []
    for (const entry of held) {
      const { item, ts, recvTs } = entry
      if (ts !== undefined && recvTs !== undefined) this.#settlePair(entry, next)
      else if ((ts ?? recvTs) !== undefined) this.#settleLeap(entry, next)
      else {
        const time = this.#lastTs ?? next?.ts ?? next?.recvTs ?? firstTime(held)!
        this.#deliver(item, time, time)
      }
    }
  }

  /** The first message's times are apart: the one that the next message's times agree with is right, or both are. */
  #settlePair({ item, ts, recvTs }: Held<T>, next: Held<T> | undefined): void {
    const [nextTs, nextRecvTs] = [next?.ts ?? next?.recvTs, next?.recvTs ?? next?.ts]
    const isTsFar = nextTs !== undefined && distance(ts!, nextTs) > BEHIND_NS_MAX
    const isRecvFar = nextRecvTs !== undefined && distance(recvTs!, nextRecvTs) > BEHIND_NS_MAX
    if (isTsFar && !isRecvFar) this.#setAside(item, 'ts', ts!, recvTs!)
    else if (isRecvFar && !isTsFar) this.#setAside(item, 'recvTs', recvTs!, ts!)
    else this.#deliver(item, ts!, recvTs!)
  }

  /** One clock alone leapt ahead: it was wrong when the next message goes back, or when nothing bears it out. */
  #settleLeap({ item, ts, recvTs }: Held<T>, next: Held<T> | undefined): void {
    const time = ts ?? recvTs!
    const nextTime = next?.ts ?? next?.recvTs
    if (this.#lastTs === undefined) {
      const isFar =
        nextTime !== undefined && (time > nextTime + BEHIND_NS_MAX || time < nextTime - HEARD_BEFORE_NS_MAX)
      if (isFar) this.#setAside(item, ts === undefined ? 'recvTs' : 'ts', time, nextTime)
      else this.#deliver(item, time, time)
      return
    }
    const isLost = nextTime === undefined && (this.#options.isIdle(item) || time > this.#lastTs + LEAP_NS_MAX)
    const isWrong = isLost || (nextTime !== undefined && nextTime < time - BEHIND_NS_MAX)
    if (isWrong) this.#setAside(item, ts === undefined ? 'recvTs' : 'ts', time, this.#lastTs)
    else this.#deliver(item, time, time)
  }

  #take({ item, ts, recvTs }: Held<T>): void {
    if (ts === undefined || recvTs === undefined) {
      const time = ts ?? recvTs!
      const isBehind = this.#lastTs !== undefined && time < this.#lastTs - BEHIND_NS_MAX
      if (isBehind) this.#setAside(item, ts === undefined ? 'recvTs' : 'ts', time, this.#lastTs!)
      else this.#deliver(item, time, time)
      return
    }
    if (!areApart(ts, recvTs)) {
      const isBack = this.#lastTs !== undefined && ts < this.#lastTs - BACK_NS_MAX
      if (isBack && this.#options.isNext(item)) this.#setAside(item, 'ts', ts, recvTs)
      else this.#deliver(item, ts, recvTs)
      return
    }
    if (this.#options.trustsReceiveTimes || this.#lastTs === undefined || this.#lastRecvTs === undefined) {
      this.#setAside(item, 'ts', ts, recvTs)
      return
    }
    const [tsStep, recvStep] = [distance(ts, this.#lastTs), distance(recvTs, this.#lastRecvTs)]
    // Two clocks that differ by as much as ever: a recorder in another time zone, say. Each is right in itself.
    if (tsStep <= BEHIND_NS_MAX && recvStep <= BEHIND_NS_MAX) this.#deliver(item, ts, recvTs)
    else if (recvStep <= tsStep) {
      this.#setAside(item, 'ts', ts, areApart(this.#lastTs, this.#lastRecvTs) ? this.#lastTs : recvTs, recvTs)
    } else this.#setAside(item, 'recvTs', recvTs, ts)
  }

  /** Delivers at `time` what a clock put elsewhere. */
  #setAside(item: T, which: 'ts' | 'recvTs', wrong: bigint, time: bigint, recvTs = time): void {
    this.#options.onSetAside(item, which, wrong > time ? wrong - time : time - wrong)
    this.#deliver(item, time, recvTs)
  }

  #deliver(item: T, ts: bigint, recvTs: bigint): void {
    this.#options.deliver(item, ts, recvTs)
    if (this.#lastTs === undefined || ts > this.#lastTs) this.#lastTs = ts
    if (this.#lastRecvTs === undefined || recvTs > this.#lastRecvTs) this.#lastRecvTs = recvTs
  }
}

function areApart(ts: bigint, recvTs: bigint): boolean {
  return ts - recvTs > AHEAD_NS_MAX || recvTs - ts > BEHIND_NS_MAX
}

function distance(a: bigint, b: bigint): bigint {
  return a > b ? a - b : b - a
}

function firstTime<T>(held: readonly Held<T>[]): bigint | undefined {
  for (const { ts, recvTs } of held) if ((ts ?? recvTs) !== undefined) return ts ?? recvTs
  return undefined
}
