// Candles in memory, in growing columns. Readers, pipeline stages and the encoder exchange candles in this form. Prices are in
// 1/10000 dollar, volume and open interest in 1/100 contract, as in lake and store.

import { grownInto } from '../output/grown-into.ts'

const ROWS_MIN = 64
/** The columns of numbers. `filled` is 1 for a filled candle, 0 for a traded one. */
const COLUMNS = ['endMs', 'open', 'high', 'low', 'close', 'volume', 'openInterest', 'filled'] as const
const NOTHING = new Float64Array(0)

export type Candle = { readonly market: string } & Record<(typeof COLUMNS)[number], number>

export class CandleRows {
  length = 0
  readonly market: string[] = []
  endMs: Float64Array = NOTHING
  open: Float64Array = NOTHING
  high: Float64Array = NOTHING
  low: Float64Array = NOTHING
  close: Float64Array = NOTHING
  volume: Float64Array = NOTHING
  openInterest: Float64Array = NOTHING
  filled: Float64Array = NOTHING

  constructor(capacity = ROWS_MIN) {
    for (const column of COLUMNS) this[column] = new Float64Array(capacity)
  }

  push(candle: Candle): void {
    const index = this.#append(candle.market, candle.endMs)
    this.open[index] = candle.open
    this.high[index] = candle.high
    this.low[index] = candle.low
    this.close[index] = candle.close
    this.volume[index] = candle.volume
    this.openInterest[index] = candle.openInterest
    this.filled[index] = candle.filled
  }

  /** Sets the values of a candle to those of a row. */
  read(index: number, candle: Candle): void {
    candle.open = this.open[index]!
    candle.high = this.high[index]!
    candle.low = this.low[index]!
    candle.close = this.close[index]!
    candle.volume = this.volume[index]!
    candle.openInterest = this.openInterest[index]!
    candle.filled = this.filled[index]!
  }

  /** Appends rows whose values, markets included, are set by the caller, and returns the index of the first. */
  reserve(count: number): number {
    const start = this.length
    while (start + count > this.endMs.length) this.#grow()
    this.length = start + count
    return start
  }

  /** Appends the rows [from, to) of another set. */
  copyAll(other: CandleRows, from: number, to: number): void {
    const start = this.reserve(to - from)
    for (let row = from; row < to; row++) this.market[start + row - from] = other.market[row]!
    for (const column of COLUMNS) this[column].set(other[column].subarray(from, to), start)
  }

  /** Appends a row of another set. */
  copy(from: CandleRows, at: number): void {
    const index = this.#append(from.market[at]!, from.endMs[at]!)
    this.open[index] = from.open[at]!
    this.high[index] = from.high[at]!
    this.low[index] = from.low[at]!
    this.close[index] = from.close[at]!
    this.volume[index] = from.volume[at]!
    this.openInterest[index] = from.openInterest[at]!
    this.filled[index] = from.filled[at]!
  }

  /** Removes all rows and keeps the memory. */
  clear(): void {
    this.length = 0
    this.market.length = 0
  }

  get sizeBytes(): number {
    return 64 * this.endMs.length
  }

  /** Appends a row whose values are set by the caller, and returns its index. */
  #append(market: string, endMs: number): number {
    const index = this.length
    if (index === this.endMs.length) this.#grow()
    this.length = index + 1
    this.market[index] = market
    this.endMs[index] = endMs
    return index
  }

  #grow(): void {
    const capacity = 2 * Math.max(this.endMs.length, ROWS_MIN / 2)
    for (const column of COLUMNS) this[column] = grownInto(new Float64Array(capacity), this[column])
  }
}
