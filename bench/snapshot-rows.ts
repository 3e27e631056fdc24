// Snapshot rows of changing books: random walks of a few markets, one row per market and tick, from a fixed seed. Only for
// benchmarks of the output encoders: it does not imitate a real market and replays no deltas.

/** One side of all rows; row i's levels are `[offsets[i], offsets[i + 1])`, best first. */
export interface SnapshotSide {
  readonly offsets: Int32Array
  /** Cents. */
  readonly prices: Uint8Array
  /** Whole contracts. */
  readonly quantities: Float64Array
}

export interface SnapshotRows {
  readonly rows: number
  readonly levels: number
  readonly marketIds: readonly string[]
  readonly tsSeconds: Float64Array
  readonly marketIndex: Int32Array
  readonly bestBid: Int32Array
  readonly bestAsk: Int32Array
  readonly spread: Int32Array
  readonly mid: Float64Array
  readonly bids: SnapshotSide
  readonly asks: SnapshotSide
}

const START_S = Date.UTC(2026, 6, 1) / 1000
/** Level changes per tick over all markets, equal to 2 million deltas a day. */
const CHANGES_PER_TICK = 23
const MID_MOVE_PROBABILITY = 0.02
const BOOK_REACH_CENTS = 30

interface Book {
  readonly quantityAt: Float64Array
  middle: number
}

/** Rows in the service's order: by time, then by market. */
export function makeSnapshotRows(
  rowCount: number,
  marketCount: number,
  levels: number,
  seed: number,
): SnapshotRows {
  const random = mulberry32(seed)
  const books = Array.from({ length: marketCount }, (_, market) =>
    makeBook(random, 20 + ((market * 12) % 60)),
  )
  const bids = new SideBuilder(rowCount, levels)
  const asks = new SideBuilder(rowCount, levels)
  const made = {
    rows: rowCount,
    levels,
    marketIds: books.map((_, market) => `KXHIGHNY-26JUL01-B${79 + 2 * market}.5`),
    tsSeconds: new Float64Array(rowCount),
    marketIndex: new Int32Array(rowCount),
    bestBid: new Int32Array(rowCount),
    bestAsk: new Int32Array(rowCount),
    spread: new Int32Array(rowCount),
    mid: new Float64Array(rowCount),
  }
  for (let row = 0; row < rowCount; row++) {
    const market = row % marketCount
    if (market === 0) for (let i = 0; i < CHANGES_PER_TICK; i++) changeBook(random, busyBook(random, books))
    const book = books[market]!
    const bid = bids.append(row, book, -1)
    const ask = asks.append(row, book, 1)
    made.tsSeconds[row] = START_S + Math.floor(row / marketCount)
    made.marketIndex[row] = market
    made.bestBid[row] = bid
    made.bestAsk[row] = ask
    made.spread[row] = bid > 0 && ask > 0 ? ask - bid : -1
    made.mid[row] = bid > 0 && ask > 0 ? (bid + ask) / 2 : 0
  }
  return { ...made, bids: bids.build(), asks: asks.build() }
}

class SideBuilder {
  readonly #offsets: Int32Array
  readonly #prices: Uint8Array
  readonly #quantities: Float64Array
  readonly #levels: number
  #size = 0

  constructor(rowCount: number, levels: number) {
    this.#offsets = new Int32Array(rowCount + 1)
    this.#prices = new Uint8Array(rowCount * levels)
    this.#quantities = new Float64Array(rowCount * levels)
    this.#levels = levels
  }

  /** Returns the best price; 0 for an empty side. */
  append(row: number, book: Book, direction: 1 | -1): number {
    const start = this.#size
    for (let price = book.middle + direction; price > 0 && price < 100; price += direction) {
      if (this.#size - start === this.#levels) break
      const quantity = book.quantityAt[price]!
      if (quantity === 0) continue
      this.#prices[this.#size] = price
      this.#quantities[this.#size++] = quantity
    }
    this.#offsets[row + 1] = this.#size
    return this.#size === start ? 0 : this.#prices[start]!
  }

  build(): SnapshotSide {
    return {
      offsets: this.#offsets,
      prices: this.#prices.slice(0, this.#size),
      quantities: this.#quantities.slice(0, this.#size),
    }
  }
}

function makeBook(random: () => number, middle: number): Book {
  const quantityAt = new Float64Array(101)
  for (let price = 1; price < 100; price++) {
    const distance = Math.abs(price - middle)
    if (distance > 0 && distance <= BOOK_REACH_CENTS) quantityAt[price] = someQuantity(random)
  }
  return { quantityAt, middle }
}

/** The first market is the busiest: market n gets a share of 1 / (n + 1), because activity in real series is uneven. */
function busyBook(random: () => number, books: readonly Book[]): Book {
  const total = books.reduce((sum, _, market) => sum + 1 / (market + 1), 0)
  let left = random() * total
  for (const [market, book] of books.entries()) {
    left -= 1 / (market + 1)
    if (left <= 0) return book
  }
  return books[0]!
}

function changeBook(random: () => number, book: Book): void {
  const sign = random() < 0.5 ? -1 : 1
  if (random() < MID_MOVE_PROBABILITY) {
    const middle = book.middle + sign
    if (middle < 5 || middle > 95) return
    book.quantityAt[book.middle] = someQuantity(random)
    book.quantityAt[middle] = 0
    book.middle = middle
    return
  }
  const price = book.middle + sign * (1 + Math.floor(random() ** 2 * (BOOK_REACH_CENTS - 2)))
  if (price < 1 || price > 99) return
  const quantity = book.quantityAt[price]! + Math.floor((random() - 0.5) * 400)
  book.quantityAt[price] = random() < 0.1 ? 0 : Math.max(0, quantity)
}

function someQuantity(random: () => number): number {
  return 1 + Math.floor(random() ** 3 * 20_000)
}

/** A small seeded generator (mulberry32): the same numbers on every platform. */
function mulberry32(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}
