// A map that forgets what was set first when all that it holds weighs more than it may.

export class BoundedMap<Value> {
  readonly #max: number
  readonly #entries = new Map<string, { readonly value: Value; readonly weight: number }>()
  #weight = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Of all entries. */
  get weight(): number {
    return this.#weight
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key)?.value
  }

  /** The entry becomes the newest one; one that alone weighs too much is not kept. */
  set(key: string, value: Value, weight = 1): void {
    this.delete(key)
    if (weight > this.#max) return
    this.#entries.set(key, { value, weight })
    this.#weight += weight
    // To find the oldest entry takes as long as entries before it were deleted.
    if (this.#weight <= this.#max) return
    for (const oldest of this.#entries.keys()) {
      this.delete(oldest)
      if (this.#weight <= this.#max) return
    }
  }

  /** Makes an entry the newest one. */
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
