// Random numbers that a seed repeats exactly (mulberry32): a failing case is run again by its seed alone.

export class SeededRandom {
  #state: number

  constructor(seed: number) {
    this.#state = (Math.imul(seed, 0x9e3779b1) + 0x85ebca6b) >>> 0
    this.next()
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number, both ends included. */
  int(min: number, max: number): number {
    return min + Math.floor(this.next() * (max - min + 1))
  }

  /** An instant, both ends included (ns). */
  instant(min: bigint, max: bigint): bigint {
    return min + BigInt(Math.floor(this.next() * Number(max - min)))
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  pick<T>(list: readonly T[]): T {
    return list[this.int(0, list.length - 1)]!
  }

  shuffled<T>(list: readonly T[]): T[] {
    const result = [...list]
    for (let index = result.length - 1; index > 0; index--) {
      const other = this.int(0, index)
      const held = result[index]!
      result[index] = result[other]!
      result[other] = held
    }
    return result
  }

  /** At least one of `list`, in its order. */
  someOf<T>(list: readonly T[]): T[] {
    const sure = this.int(0, list.length - 1)
    return list.filter((_, index) => index === sure || this.chance(0.6))
  }
}
