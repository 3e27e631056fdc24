// Checks that the lines of a file are in the order of receipt. A file may contain recordings one after the other. If it goes back
// every few messages, their order is unknown, and the file is refused.

/** Channels of one connection may overtake each other by this much. */
const BACK_NS_MAX = 5_000_000_000n
/** A file may go back this often, and also once in this many messages. */
const BACKS_MAX = 8
const MESSAGES_PER_BACK_MIN = 16
/** The latest numbers of a subscription that are remembered to recognise repeated messages. */
const RECENT_NUMBERS = 1_024
/** Subscriptions tracked at once; if a file has more, the map is cleared. */
const SUBSCRIPTIONS_MAX = 1_000

/** The state of a subscription's numbers. */
interface Numbers {
  last: number
  lastTime: bigint | undefined
  /** The number before the last jump. */
  left: number | undefined
  /** The latest messages: the number and its time, at the index of the number modulo RECENT_NUMBERS. */
  readonly recent: number[]
  readonly recentTimes: (bigint | undefined)[]
}

/** Tracks the lines of one file. */
export class LineOrder {
  readonly #name: string
  #backs = 0
  #messages = 0
  #lastTime: bigint | undefined
  readonly #subscriptions = new Map<number, Numbers>()

  /** `name` is for the error message. */
  constructor(name: string) {
    this.#name = name
  }

  /**
   * Takes the next message. `time` (ns) is its receive time or the exchange's time; `sid` and `seq` are its subscription and its
   * number, if it has them.
   */
  count(time: bigint | undefined, sid?: number, seq?: number): void {
    this.#messages++
    const isEarlier = this.#goesBackInTime(time)
    const isLower = sid !== undefined && seq !== undefined && this.#goesBackInNumbers(time, sid, seq)
    if (isEarlier || isLower) this.#backs++
  }

  /** Throws at the end of a file whose lines are out of order. */
  refuseDisorder(): void {
    if (this.#backs <= BACKS_MAX || this.#messages >= this.#backs * MESSAGES_PER_BACK_MIN) return
    throw new Error(
      `${this.#name}: it goes back ${this.#backs} times in ${this.#messages} messages: its lines are not in the order in ` +
        'which they came, or several recorders have written it at once; sort them by receive time, and import each ' +
        'recorder’s as a file of its own',
    )
  }

  #goesBackInTime(time: bigint | undefined): boolean {
    if (time === undefined) return false
    const last = this.#lastTime
    this.#lastTime = time
    return last !== undefined && time < last && time < last - BACK_NS_MAX
  }

  #goesBackInNumbers(time: bigint | undefined, sid: number, seq: number): boolean {
    const numbers = this.#numbersOf(sid)
    const { last, lastTime, left } = numbers
    const place = seq % RECENT_NUMBERS
    if (seq <= last && numbers.recent[place] === seq && numbers.recentTimes[place] === time) return false
    numbers.recent[place] = seq
    numbers.recentTimes[place] = time
    numbers.last = seq
    numbers.lastTime = time
    if (seq === last + 1 || last === -1) return false
    numbers.left = last
    // Either the numbers continue after the place before the last jump, or the message is an earlier one.
    const isEarlier = seq <= last && time !== undefined && lastTime !== undefined && time < lastTime
    return left === seq - 1 || isEarlier
  }

  #numbersOf(sid: number): Numbers {
    let numbers = this.#subscriptions.get(sid)
    if (numbers === undefined) {
      if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) this.#subscriptions.clear()
      numbers = {
        last: -1,
        lastTime: undefined,
        left: undefined,
        recent: Array.from({ length: RECENT_NUMBERS }, () => -1),
        recentTimes: Array.from({ length: RECENT_NUMBERS }, () => undefined),
      }
      this.#subscriptions.set(sid, numbers)
    }
    return numbers
  }
}
