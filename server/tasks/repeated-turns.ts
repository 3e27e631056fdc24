// Runs a task now and then again, an interval after the end of each run, until it is closed. Only one run is active at a time.
// It does not keep the process alive.

export class RepeatedTurns {
  readonly #intervalMs: number
  readonly #take: (signal: AbortSignal) => Promise<void>
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<void> = Promise.resolve()

  /** @param take must handle its own failures; `close` aborts its signal */
  constructor(intervalMs: number, take: (signal: AbortSignal) => Promise<void>) {
    this.#intervalMs = intervalMs
    this.#take = take
  }

  /** Resolves after the first turn. */
  start(): Promise<void> {
    this.#turn = this.#takeTurn()
    return this.#turn
  }

  /** Resolves when no turn is running. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearTimeout(this.#timer)
    await this.#turn
  }

  async #takeTurn(): Promise<void> {
    await this.#take(this.#closing.signal)
    if (this.#closing.signal.aborted) return
    this.#timer = setTimeout(() => void this.start(), this.#intervalMs)
    this.#timer.unref()
  }
}
