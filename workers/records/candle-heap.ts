// A binary heap of candle sources, by (end, market) of their next candle.

interface NextCandle {
  readonly market: string
  readonly endMs: number
}

function isBefore(left: NextCandle, right: NextCandle): boolean {
  return left.endMs < right.endMs || (left.endMs === right.endMs && left.market < right.market)
}

export class CandleHeap<Item extends NextCandle> {
  readonly #items: Item[] = []

  /** The smallest item. */
  get first(): Item | undefined {
    return this.#items[0]
  }

  push(item: Item): void {
    const items = this.#items
    let at = items.length
    items.push(item)
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(item, items[parent]!)) break
      items[at] = items[parent]!
      at = parent
    }
    items[at] = item
  }

  shift(): void {
    const last = this.#items.pop()
    if (last === undefined || this.#items.length === 0) return
    this.#items[0] = last
    this.settleFirst()
  }

  /** Moves the first item to its place after its key has changed. */
  settleFirst(): void {
    const items = this.#items
    const item = items[0]!
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      if (child + 1 < items.length && isBefore(items[child + 1]!, items[child]!)) child++
      if (!isBefore(items[child]!, item)) break
      items[at] = items[child]!
      at = child
    }
    items[at] = item
  }
}
