// A small seeded generator (sfc32), so that the same seed gives the same sample on every machine. Only integer
// operations and IEEE-exact arithmetic are used here and by its callers: Math.log or Math.exp may differ in the last
// bit between engines. Not for anything that must be unpredictable.

const UINT32 = 4_294_967_296

export class SeededRandom {
  #a: number
  #b: number
  #c: number
  #counter = 1

  /** Streams of different names are independent of each other. */
  constructor(seed: number, name: string) {
    const text = `${seed}/${name}`
    this.#a = hashOf(text, 0x811c9dc5)
    this.#b = hashOf(text, 0x9e3779b9)
    this.#c = hashOf(text, 0x85ebca6b)
    for (let round = 0; round < 12; round += 1) this.nextUint32()
  }

  nextUint32(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0
    this.#counter = (this.#counter + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0
    return sum >>> 0
  }

  /** A number in [0, 1). */
  unit(): number {
    return this.nextUint32() / UINT32
  }

  /** An integer in [0, count). */
  below(count: number): number {
    return Math.floor(this.unit() * count)
  }

  isWithin(probability: number): boolean {
    return this.unit() < probability
  }

  /** Mean 0, deviation 1, never beyond 6: the sum of twelve uniform numbers, which needs no logarithm. */
  gaussian(): number {
    let sum = -6
    for (let index = 0; index < 12; index += 1) sum += this.unit()
    return sum
  }

  /** Small most of the time, sometimes large: u / (1 − u), cut at `max`. Its median is 1. */
  heavyTail(max: number): number {
    const u = this.unit()
    return Math.min(u / (1 - u), max)
  }

  pick<T>(values: readonly [T, ...T[]]): T {
    return values[this.below(values.length)] ?? values[0]
  }
}

/** FNV-1a over the text's UTF-16 units, finished by a multiply-xor mix. */
function hashOf(text: string, basis: number): number {
  let hash = basis | 0
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x7feb352d)
  hash = Math.imul(hash ^ (hash >>> 15), 0x846ca68b)
  return (hash ^ (hash >>> 16)) | 0
}
