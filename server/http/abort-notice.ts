// Tells whoever works for a request that its client has gone.

export class AbortNotice {
  #controller: AbortController | undefined
  #isAborted = false

  /** Made when it is first asked for: a request that is answered at once needs none. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#isAborted) this.#controller.abort()
    }
    return this.#controller.signal
  }

  get isAborted(): boolean {
    return this.#isAborted
  }

  abort(): void {
    this.#isAborted = true
    this.#controller?.abort()
  }
}
