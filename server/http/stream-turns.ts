// Lets only one stream write a chunk per turn of the event loop, so that other events are handled between two chunks, however
// many streams there are. Streams take turns in the order in which they ask.

export class StreamTurns {
  readonly #waiting: (() => void)[] = []
  #isArmed = false

  /** Resolves in a later turn of the event loop, when it is this stream's turn to write. */
  async next(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
      this.#arm()
    })
  }

  #arm(): void {
    if (this.#isArmed) return
    this.#isArmed = true
    setImmediate(() => {
      this.#isArmed = false
      this.#waiting.shift()?.()
      if (this.#waiting.length > 0) this.#arm()
    })
  }
}
