// Estimates how long a refused client has to wait until enough permits are free: from the progress of the holders, if
// known, else from how long earlier holds lasted.

/** The largest Retry-After, s. */
const RETRY_AFTER_S_MAX = 60
/** A client that takes a ninth of the fair rate counts as slow later, by this factor, than one that takes nothing. */
const SLOW_MARGIN = 9 / 8
/** Weight of the last hold in the moving average. */
const LAST_HOLD_WEIGHT = 0.2

export interface RunningHold {
  readonly count: number
  readonly heldMs: number
  /** The share of the work that is done, from 0 to 1; null when it is not known. */
  readonly progress: number | null
  /** When it may be cut off for the refused client if its own client takes no more bytes; Infinity: never. */
  readonly displaceableInMs?: number
}

export class ExpectedWait {
  #meanMs: number | undefined

  /** Learns the duration of a hold that has ended. */
  learn(heldMs: number): void {
    this.#meanMs =
      this.#meanMs === undefined ? heldMs : this.#meanMs + LAST_HOLD_WEIGHT * (heldMs - this.#meanMs)
  }

  /** Whole seconds until `wantedCount` permits are free, from `minS` to 60. */
  retryAfterS(holds: Iterable<RunningHold>, wantedCount: number, minS: number): number {
    const ending = [...holds]
      .map((hold) => ({ count: hold.count, leftMs: this.#leftMs(hold) }))
      .toSorted((left, right) => left.leftMs - right.leftMs)
    let freedCount = 0
    let waitMs = 0
    for (const { count, leftMs } of ending) {
      if (freedCount >= wantedCount) break
      freedCount += count
      waitMs = leftMs
    }
    return Math.min(Math.max(Math.ceil(waitMs / 1000), minS), RETRY_AFTER_S_MAX)
  }

  #leftMs(hold: RunningHold): number {
    return Math.min(this.#lastsMs(hold), SLOW_MARGIN * Math.max(0, hold.displaceableInMs ?? Infinity))
  }

  #lastsMs({ heldMs, progress }: RunningHold): number {
    if (progress !== null && progress > 0) return (heldMs * (1 - Math.min(progress, 1))) / progress
    // A hold that has lasted longer than the average may last half as long again.
    return Math.max((this.#meanMs ?? 0) - heldMs, heldMs / 2)
  }
}
