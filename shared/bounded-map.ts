// A map with a maximum total weight. It evicts its oldest entries.

export class BoundedMap<Value> {
  readonly #max: number
  readonly #entries = new Map<string, { readonly value: Value; readonly weight: number }>()
  #weight = 0

  constructor(max: number) {
    this.#max = max
  }

  /** The total weight of all entries. */
  get weight(): number {
    return this.#weight
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** Adds or replaces an entry as the newest one. An entry heavier than the maximum is not kept. */
  set(key: string, value: Value, weight = 1): void {
    this.delete(key)
    if (weight > this.#max) return
    this.#entries.set(key, { value, weight })
    this.#weight += weight
    // Checked first, because the search for the oldest entry passes all deleted entries before it.
    if (this.#weight <= this.#max) return
    for (const oldest of this.#entries.keys()) {
      this.delete(oldest)
      if (this.#weight <= this.#max) return
    }
  }

  /** Makes an entry the newest one (evicted last). */
  renew(key: string): void {
    const entry = this.#entries.get(key)
    if (entry === undefined) return
    this.#entries.delete(key)
    this.#entries.set(key, entry)
  }

  delete(key: string): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0
    this.#entries.delete(key)
  }

  values(): readonly Value[] {
    return [...this.#entries.values()].map(({ value }) => value)
  }
}
