// Something that is done now and, from then on, a while after each time, one at a time, until it is closed. It keeps no
// process alive.

export class RepeatedTurns {
  readonly #intervalMs: number
  readonly #take: (signal: AbortSignal) => Promise<void>
  readonly #closing = new AbortController()
  #timer: NodeJS.Timeout | undefined
  #turn: Promise<void> = Promise.resolve()

  /** @param take sees to its own failures; its signal is aborted by `close` */
  constructor(intervalMs: number, take: (signal: AbortSignal) => Promise<void>) {
    this.#intervalMs = intervalMs
    this.#take = take
  }

  /** Resolves after the first turn. */
  start(): Promise<void> {
    this.#turn = this.#takeTurn()
    return this.#turn
  }

  /** Resolves when no turn runs any more. */
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
