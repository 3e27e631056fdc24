// A file numbers its strands in the order in which its rows and evidence first name them.

export class StrandNumbers {
  readonly #strands: number[]
  readonly #numbers: Map<number, number>

  constructor(strands: readonly number[] = []) {
    this.#strands = [...strands]
    this.#numbers = new Map(strands.map((strand, number) => [strand, number]))
  }

  /** The strands by number. */
  get strands(): readonly number[] {
    return this.#strands
  }

  localOf(strand: number): number {
    const known = this.#numbers.get(strand)
    if (known !== undefined) return known
    const number = this.#strands.length
    this.#strands.push(strand)
    this.#numbers.set(strand, number)
    return number
  }
}
