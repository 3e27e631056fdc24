// The receive time of messages. It follows the machine's clock until that is set forward or back in one step. Then it continues
// with the steady clock, and the exchange's times show whether the step was right. So a clock that is wrong for a while changes
// nothing, and a correction is followed. The time never goes back: after the clock was ahead, the time stands still until the clock
// has caught up.

import { Buffer } from 'node:buffer'

/** Smaller differences of the machine's clock are followed: the clock is slewed, and read at another moment. */
const STEP_MS_MIN = 2_000
/** Consecutive messages of the exchange that must agree with the stepped clock. */
const VOTES_MIN = 5
/** A receive time may be this long before (clock difference) or after (slow connection) the message's own time. */
const BEFORE_MS_MAX = 5_000
const AFTER_MS_MAX = 30_000
/** A clock set forward is followed if no message has been decisive for this long: the machine may have slept. */
const QUIET_MS_MAX = 60_000
/** A message read this soon after a step may have waited in the socket while the machine slept, with an older time. */
const WAITING_MS_MAX = 1_000
/** The bytes at the head and the end of a message in which its time is searched. */
const HEAD_BYTES_MAX = 512
const END_BYTES_MAX = 256

const EXCHANGE_TIME = /"(?:ts_ms|timestamp)":\s?"?(\d{13})\b/

/** The exchange's time of a message, ms since the epoch; undefined if neither its head nor its end has one. */
export function exchangeMsOf(data: Buffer): number | undefined {
  const match =
    EXCHANGE_TIME.exec(data.toString('latin1', 0, Math.min(HEAD_BYTES_MAX, data.length))) ??
    EXCHANGE_TIME.exec(data.toString('latin1', Math.max(0, data.length - END_BYTES_MAX)))
  return match === null ? undefined : Number(match[1])
}

export class ReceiveClock {
  readonly #wallMs: () => number
  readonly #steadyMs: () => number
  /** The receive time minus the steady time. */
  #offsetMs: number
  #lastMs = 0
  /** The size of the step of the machine's clock; 0 while that clock is followed. */
  #steppedByMs = 0
  /** Steady time when the step was noticed. */
  #steppedAtMs = 0
  /** Steady time since which no message has been decisive. */
  #quietSinceMs = 0
  #votes = 0
  #isRefused = false

  /** `steadyMs` is not affected by changes of `wallMs`, the machine's clock in ms since the epoch. */
  constructor(wallMs: () => number = () => Date.now(), steadyMs: () => number = () => performance.now()) {
    this.#wallMs = wallMs
    this.#steadyMs = steadyMs
    this.#offsetMs = wallMs() - steadyMs()
  }

  /** Milliseconds since the epoch; never less than before. */
  nowMs(): number {
    const steadyMs = this.#steadyMs()
    const wallMs = this.#wallMs()
    this.#notice(wallMs, steadyMs)
    const nowMs = this.#steppedByMs === 0 ? wallMs : Math.floor(steadyMs + this.#offsetMs)
    if (nowMs > this.#lastMs) this.#lastMs = nowMs
    return this.#lastMs
  }

  /** The step of the machine's clock forward (or back, negative) that is not followed, ms. */
  get steppedByMs(): number {
    return this.#steppedByMs
  }

  /** Call it when a connection has opened: after a sleep of the machine, this comes before any message with a time. */
  reconnected(): void {
    this.nowMs()
    if (this.#steppedByMs > 0 && !this.#isRefused) this.#follow(this.#wallMs(), this.#steadyMs())
  }

  /** Call it with each message, before it gets its time. */
  heard(data: Buffer): void {
    this.nowMs()
    if (this.#steppedByMs === 0) return
    const exchangeMs = exchangeMsOf(data)
    if (exchangeMs === undefined) return
    const steadyMs = this.#steadyMs()
    const lagMs = steadyMs + this.#offsetMs - exchangeMs
    const wallLagMs = this.#wallMs() - exchangeMs
    // An old time, as in a first book, is not decisive.
    if (!isNear(lagMs) && !isNear(wallLagMs)) return
    this.#quietSinceMs = steadyMs
    if (isNear(wallLagMs) && Math.abs(wallLagMs) < Math.abs(lagMs)) {
      this.#isRefused = false
      // A message is not received long before it is sent: one such message proves that time has passed.
      if (++this.#votes >= VOTES_MIN || lagMs < -BEFORE_MS_MAX) this.#follow(this.#wallMs(), steadyMs)
    } else {
      this.#votes = 0
      if (steadyMs - this.#steppedAtMs >= WAITING_MS_MAX) this.#isRefused = true
    }
  }

  #notice(wallMs: number, steadyMs: number): void {
    const byMs = wallMs - (steadyMs + this.#offsetMs)
    if (Math.abs(byMs) < STEP_MS_MIN) {
      this.#follow(wallMs, steadyMs)
      return
    }
    if (Math.abs(byMs - this.#steppedByMs) >= STEP_MS_MIN) {
      this.#steppedByMs = byMs
      this.#steppedAtMs = steadyMs
      this.#quietSinceMs = steadyMs
      this.#votes = 0
      this.#isRefused = false
    }
    const isQuiet = !this.#isRefused && steadyMs - this.#quietSinceMs > QUIET_MS_MAX
    if (byMs > 0 && isQuiet) this.#follow(wallMs, steadyMs)
  }

  #follow(wallMs: number, steadyMs: number): void {
    this.#offsetMs = wallMs - steadyMs
    this.#steppedByMs = 0
    this.#votes = 0
  }
}

function isNear(lagMs: number): boolean {
  return lagMs >= -BEFORE_MS_MAX && lagMs <= AFTER_MS_MAX
}
