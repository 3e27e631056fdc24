// The true changes of a fake exchange in compact form: every change of every book, and the message of each connection that states
// it. Twenty million changes take some 400 MB.

/** Quantities are in hundredths of a contract. */
export interface TrueChange {
  readonly market: number
  /** From `levelOf`. */
  readonly level: number
  readonly delta: number
  /** Microseconds since the epoch. */
  readonly micros: number
}

const LEVELS = 200
const NO_CHANGE = -1
/** Range of the message numbers of one connection; each connection has its own range. */
const SEQ_SPAN = 1_000_000_000
const CENT_UNITS = 100

/** The index of a book's level: bids at 0 to 99 cents, then asks. */
export function levelOf(side: number, cents: number): number {
  return side * (LEVELS / 2) + cents
}

/** A row's price is in 1/10000 dollar. */
export function levelOfRow(side: number, price: number): number {
  return levelOf(side, price / CENT_UNITS)
}

export function sideOf(level: number): number {
  return level < LEVELS / 2 ? 0 : 1
}

export function centsOf(level: number): number {
  return level % (LEVELS / 2)
}

/** A growing array of numbers. */
class Column<T extends Float64Array | Int32Array | Uint8Array> {
  #values: T
  readonly #make: (length: number) => T
  length = 0

  constructor(make: (length: number) => T) {
    this.#make = make
    this.#values = make(1024)
  }

  push(value: number): void {
    if (this.length === this.#values.length) {
      const larger = this.#make(this.length * 2)
      larger.set(this.#values)
      this.#values = larger
    }
    this.#values[this.length++] = value
  }

  at(index: number): number {
    return this.#values[index]!
  }
}

export class SoakTruth {
  readonly markets: readonly string[]
  readonly #books: Int32Array[]
  readonly #market = new Column((length) => new Uint8Array(length))
  readonly #level = new Column((length) => new Uint8Array(length))
  readonly #delta = new Column((length) => new Int32Array(length))
  readonly #micros = new Column((length) => new Float64Array(length))
  /** By connection: the change that each message states, or none. */
  readonly #told: Column<Int32Array>[] = []

  constructor(markets: readonly string[]) {
    this.markets = markets
    this.#books = markets.map(() => new Int32Array(LEVELS))
  }

  get changeCount(): number {
    return this.#market.length
  }

  get connectionCount(): number {
    return this.#told.length
  }

  quantity(market: number, level: number): number {
    return this.#books[market]![level]!
  }

  /** A market's non-empty levels, with their quantities. */
  levels(market: number): (readonly [level: number, quantity: number])[] {
    return [...this.#books[market]!].flatMap((quantity, level) =>
      quantity === 0 ? [] : [[level, quantity] as const],
    )
  }

  /** Returns the change's index, from 0. */
  change({ market, level, delta, micros }: TrueChange): number {
    this.#books[market]![level]! += delta
    this.#market.push(market)
    this.#level.push(level)
    this.#delta.push(delta)
    this.#micros.push(micros)
    return this.changeCount - 1
  }

  changeAt(number: number): TrueChange {
    return {
      market: this.#market.at(number),
      level: this.#level.at(number),
      delta: this.#delta.at(number),
      micros: this.#micros.at(number),
    }
  }

  /** The next change of the market after `number`. */
  nextOf(market: number, number: number): number {
    let next = number + 1
    while (next < this.changeCount && this.#market.at(next) !== market) next++
    return next
  }

  /** Returns the index of a new connection. */
  connect(): number {
    return this.#told.push(new Column((length) => new Int32Array(length))) - 1
  }

  /** Records the next message of a connection, which states a change or something else, and returns its `seq`. */
  tell(connection: number, change?: number): number {
    const told = this.#told[connection]!
    told.push(change ?? NO_CHANGE)
    return connection * SEQ_SPAN + told.length
  }

  /** The change of a message; undefined if it states none, or was never sent. */
  changeOf(seq: number): { readonly connection: number; readonly change: number } | undefined {
    const connection = Math.floor(seq / SEQ_SPAN)
    const told = this.#told[connection]
    const index = (seq % SEQ_SPAN) - 1
    if (told === undefined || index < 0 || index >= told.length) return undefined
    const change = told.at(index)
    return change === NO_CHANGE ? undefined : { connection, change }
  }

  /** The number of changes in the messages of a connection up to and including `seq`; without it, in all messages. */
  toldUntil(connection: number, seq = Infinity): number {
    const told = this.#told[connection]!
    const count = Math.min(told.length, seq - connection * SEQ_SPAN)
    let changes = 0
    for (let index = 0; index < count; index++) if (told.at(index) !== NO_CHANGE) changes++
    return changes
  }
}

/** A book according to the rows, beside the true book. */
export class ComparedBook {
  readonly #rows = new Float64Array(LEVELS)
  readonly #truth = new Float64Array(LEVELS)
  #differing = 0
  isKnown = false

  /** The number of differing levels. */
  get differing(): number {
    return this.#differing
  }

  clearRows(): void {
    for (let level = 0; level < LEVELS; level++) this.setRow(level, 0)
  }

  rowQuantity(level: number): number {
    return this.#rows[level]!
  }

  setRow(level: number, quantity: number): void {
    this.#set(this.#rows, level, quantity)
  }

  addTruth(level: number, delta: number): void {
    this.#set(this.#truth, level, this.#truth[level]! + delta)
  }

  #set(side: Float64Array, level: number, quantity: number): void {
    const wasEqual = this.#rows[level] === this.#truth[level]
    side[level] = quantity
    const isEqual = this.#rows[level] === this.#truth[level]
    if (wasEqual !== isEqual) this.#differing += isEqual ? -1 : 1
  }
}
