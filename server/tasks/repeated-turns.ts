// Runs a task now and then again, an interval after the end of each run, until it is closed. Only one run is active at a time.
// It does not keep the process alive.

export abstract class RepeatedTurns {
  readonly #intervalMs: number
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<void> = Promise.resolve()

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  /** It must handle its own failures; `close` aborts the signal. */
  protected abstract take(signal: AbortSignal): Promise<void>

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
    await this.take(this.#closing.signal)
    if (this.#closing.signal.aborted) return
    this.#timer = setTimeout(() => (this.#turn = this.#takeTurn()), this.#intervalMs)
    this.#timer.unref()
  }
}
