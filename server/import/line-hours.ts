// The UTC hour under which each line of a recording is filed: the hour of its exchange time. A message without one has its receive
// time, minus the delay that the lines before show. A book without both has the time of its last change, as in the fold, if that is at
// most an hour later than the lines before. A line begins another hour only if the next line with a time confirms it: one wrong
// time must not move the lines after it.
//
// Times are milliseconds as JavaScript numbers: this runs once a line, and hours need no more.

import { MS_PER_DAY, MS_PER_HOUR, NS_PER_MS } from '../../shared/utc-date.ts'
import { CLOCK_OFF_NS_MAX } from '../fold/message-times.ts'

/** The largest difference by which channels of a connection overtake each other, or a clock moves between two messages. */
const TOLERANCE_MS = 5_000
/** The largest lag of a drifting clock. A larger one comes from local time, or from a wrong time. */
const DRIFT_MS_MAX = 600_000
const CLOCK_OFF_MS_MAX = Number(CLOCK_OFF_NS_MAX / NS_PER_MS)
/** If the first line is further before the second one, its time is wrong. */
const FIRST_GAP_MS_MAX = 31 * MS_PER_DAY
/** The last line of a recording, which no line confirms, may be this long after the line before. */
const LAST_GAP_MS_MAX = MS_PER_DAY

/** The times of one line; NaN if it has none. */
export interface LineTimes {
  /** The exchange's. */
  readonly ms: number
  readonly recvMs: number
  /** The time of its books, if that is only the time of their last change. */
  readonly bookMs: number
}

/**
 * `stay`: the line belongs to the open hour. `wait`: the line may begin another hour; hold it, and give the next lines to
 * `resolve`.
 */
export type HourVerdict = 'stay' | 'wait'

export class LineHours {
  /** The open hour's start; undefined until two lines agree on it, or the recording ends. */
  #hourMs: number | undefined
  /** The latest time in it. */
  #lastMs = NaN
  /** The time of the first line that has one, until the next one confirms it. */
  #firstMs = NaN
  /** Whether that is a receive time alone. */
  #isFirstReceived = false
  #hasCut = false
  /** The line that waits. */
  #waiting: LineTimes | undefined
  /** Receive time minus exchange time, on which the latest lines agree; and a new value, which the next line may confirm. */
  #lagMs = NaN
  #nextLagMs = NaN

  /** Judges a line when no line waits. */
  judge(line: LineTimes): HourVerdict {
    const time = this.#timeOf(line)
    if (Number.isNaN(time)) {
      this.#noteLag(line)
      return 'stay'
    }
    if (this.#hourMs === undefined || (this.#isFirstReceived && !this.#hasCut && !Number.isNaN(line.ms)))
      this.#begin(line, time)
    const hourMs = this.#hourMs
    if (hourMs === undefined || (time >= hourMs - TOLERANCE_MS && time < hourMs + MS_PER_HOUR)) {
      this.#take(line, time)
      return 'stay'
    }
    this.#waiting = line
    return 'wait'
  }

  /**
   * Whether the waiting line begins another hour, by the time of the next line; `undefined` if that has no time. Judge `line`
   * afterwards.
   */
  resolve(line: LineTimes): boolean | undefined {
    const waiting = this.#waiting!
    const time = this.#timeOf(line)
    if (Number.isNaN(time)) {
      this.#noteLag(line)
      return undefined
    }
    const since = this.#timeOf(waiting)
    const isBack = since < this.#hourMs!
    return this.#settle(time >= since - TOLERANCE_MS && (!isBack || time < this.#hourMs! - TOLERANCE_MS))
  }

  /** The same at the end of the recording. */
  resolveLast(): boolean {
    const waiting = this.#waiting!
    if (this.#timeOf(waiting) < this.#hourMs!) return this.#settle(false)
    const lagMs = waiting.recvMs - waiting.ms - this.#lagMs
    if (!Number.isNaN(lagMs)) return this.#settle(Math.abs(lagMs) <= TOLERANCE_MS)
    return this.#settle(this.#timeOf(waiting) <= this.#lastMs + LAST_GAP_MS_MAX)
  }

  /** The same after too many lines without a time. */
  giveUp(): false {
    this.#settle(false)
    return false
  }

  /** The start of the open hour, ms; `undefined` if no line had a time. */
  get hourMs(): number | undefined {
    if (this.#hourMs !== undefined) return this.#hourMs
    return Number.isNaN(this.#firstMs) ? undefined : hourOf(this.#firstMs)
  }

  #settle(begins: boolean): boolean {
    const waiting = this.#waiting!
    this.#waiting = undefined
    if (!begins) return false
    const time = this.#timeOf(waiting)
    this.#hourMs = hourOf(time)
    this.#hasCut = true
    this.#take(waiting, time)
    return true
  }

  // Called until the second line with a time, and until the first line with an exchange time.
  #begin(line: LineTimes, time: number): void {
    const isReceived = Number.isNaN(line.ms) || this.#isDoubted(line)
    const first = this.#firstMs
    const isBorneOut = time >= hourOf(first) - TOLERANCE_MS && time <= first + FIRST_GAP_MS_MAX
    // If the recorder's clock is right, the earlier receive times are right too, unless this line contradicts them.
    const isClockRight = Math.abs(line.recvMs - line.ms) <= TOLERANCE_MS
    const isRefuted = this.#isFirstReceived && !isReceived && !(isBorneOut && isClockRight)
    // The clock is right, and the first exchange time was far from its receive time.
    const isFirstWrong = isClockRight && !this.#isFirstReceived && !Number.isNaN(this.#nextLagMs)
    if (Number.isNaN(first) || isRefuted || isFirstWrong) {
      this.#hourMs = undefined
      this.#lastMs = NaN
      this.#firstMs = time
      this.#isFirstReceived = isReceived
    } else if (isBorneOut) {
      this.#hourMs = hourOf(first)
      if (!isReceived) this.#isFirstReceived = false
    } else this.#firstMs = time
  }

  #take(line: LineTimes, time: number): void {
    if (!(time <= this.#lastMs)) this.#lastMs = time
    this.#noteLag(line)
  }

  #noteLag(line: LineTimes): void {
    const lagMs = line.recvMs - line.ms
    if (Number.isNaN(lagMs)) return
    // A new lag counts when the next one is near it. So does a first lag that is too large for a drifting clock.
    const isFit = Number.isNaN(this.#lagMs) ? Math.abs(lagMs) <= DRIFT_MS_MAX : isNear(lagMs, this.#lagMs)
    if (isFit || isNear(lagMs, this.#nextLagMs)) {
      this.#lagMs = lagMs
      this.#nextLagMs = NaN
    } else this.#nextLagMs = lagMs
  }

  /**
   * Whether one of a line's times must be wrong. Either the clock is right, and this line's lag differs, also from that of the line
   * before. Or no lag counts yet, and the line's exchange time is later than its receive time by more than any clock is off.
   */
  #isDoubted({ ms, recvMs }: LineTimes): boolean {
    const lagMs = recvMs - ms
    if (Number.isNaN(lagMs) || isNear(lagMs, this.#nextLagMs)) return false
    return Number.isNaN(this.#lagMs)
      ? lagMs < -CLOCK_OFF_MS_MAX
      : isNear(this.#lagMs, 0) && !isNear(lagMs, this.#lagMs)
  }

  /** NaN if unknown. */
  #timeOf(line: LineTimes): number {
    const { ms, recvMs, bookMs } = line
    if (Number.isNaN(ms) && Number.isNaN(recvMs)) {
      // Books of one event may state one wrong time, and would confirm each other.
      const isNext = bookMs > this.#lastMs && bookMs <= this.#lastMs + MS_PER_HOUR
      return isNext ? bookMs : NaN
    }
    const isDoubted = this.#isDoubted(line)
    if (!Number.isNaN(ms) && !isDoubted) return ms
    if (!Number.isNaN(this.#lagMs)) return isDoubted ? NaN : recvMs - this.#lagMs
    return this.#nextLagMs >= -CLOCK_OFF_MS_MAX ? NaN : recvMs
  }
}

function isNear(a: number, b: number): boolean {
  return Math.abs(a - b) <= TOLERANCE_MS
}

function hourOf(ms: number): number {
  return Math.floor(ms / MS_PER_HOUR) * MS_PER_HOUR
}
