// When something was received. The machine's clock says it, until it is put forward or back in one step; then the time that
// has passed since goes on being counted, and the exchange's own times tell whether the step was right. So a clock that is
// put wrong for a while moves nothing, and one that is put right is followed. Time never goes back: a clock that is right
// again after it was ahead is waited for.

import { Buffer } from 'node:buffer'

/** The machine's clock is followed through differences below it: it is slewed, and read at another moment. */
const STEP_MS_MIN = 2_000
/** Messages of the exchange that must agree, one after the other, on the clock that was put forward or back. */
const VOTES_MIN = 5
/** A message is received so long before (a clock's difference) and after (a slow connection) its own time. */
const BEFORE_MS_MAX = 5_000
const AFTER_MS_MAX = 30_000
/** A clock put forward is followed when no message has told anything for so long: the machine may have slept. */
const QUIET_MS_MAX = 60_000
/** What is read so soon after a step may have waited in the socket while the machine slept: it speaks of before. */
const WAITING_MS_MAX = 1_000
/** The head of a message, and its end, in which its time is looked for. */
const HEAD_BYTES_MAX = 512
const END_BYTES_MAX = 256

const EXCHANGE_TIME = /"(?:ts_ms|timestamp)":\s?"?(\d{13})\b/

/** The exchange's time of a message, ms since the epoch; undefined where neither its head nor its end names one. */
export function exchangeMsOf(data: Buffer): number | undefined {
  const match =
    EXCHANGE_TIME.exec(data.toString('latin1', 0, Math.min(HEAD_BYTES_MAX, data.length))) ??
    EXCHANGE_TIME.exec(data.toString('latin1', Math.max(0, data.length - END_BYTES_MAX)))
  return match === null ? undefined : Number(match[1])
}

export class ReceiveClock {
  readonly #wallMs: () => number
  readonly #steadyMs: () => number
  /** The time less the steady clock's. */
  #offsetMs: number
  #lastMs = 0
  /** By how much the machine's clock differs since it was put forward or back; 0 while it is followed. */
  #steppedByMs = 0
  /** Steady time at which the step was noticed. */
  #steppedAtMs = 0
  /** Steady time since which no message has told anything of the step. */
  #quietSinceMs = 0
  #votes = 0
  #isRefused = false

  /** `steadyMs` counts on whatever happens to `wallMs`, the machine's clock in ms since the epoch. */
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

  /** By how much the machine's clock was put forward (or back, negative) without being followed, ms. */
  get steppedByMs(): number {
    return this.#steppedByMs
  }

  /** A connection has just opened. After a sleep of the machine it is the first to come, and what it says has no time yet. */
  reconnected(): void {
    this.nowMs()
    if (this.#steppedByMs > 0 && !this.#isRefused) this.#follow(this.#wallMs(), this.#steadyMs())
  }

  /** A message has just come; told before it is given its time. */
  heard(data: Buffer): void {
    this.nowMs()
    if (this.#steppedByMs === 0) return
    const exchangeMs = exchangeMsOf(data)
    if (exchangeMs === undefined) return
    const steadyMs = this.#steadyMs()
    const lagMs = steadyMs + this.#offsetMs - exchangeMs
    const wallLagMs = this.#wallMs() - exchangeMs
    // An old time, as a first book may carry it, tells nothing.
    if (!isNear(lagMs) && !isNear(wallLagMs)) return
    this.#quietSinceMs = steadyMs
    if (isNear(wallLagMs) && Math.abs(wallLagMs) < Math.abs(lagMs)) {
      this.#isRefused = false
      // Nothing is received long before it is sent: one message tells that time has passed.
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
