// Candles in memory, in growing columns. Readers, pipeline stages and the encoder exchange candles in this form. Prices are in
// 1/10000 dollar, volume and open interest in 1/100 contract, as in lake and store.

import { grownInto } from '../output/grown-into.ts'

const ROWS_MIN = 64
/** The columns of doubles. */
const DOUBLES = ['endMs', 'open', 'high', 'low', 'close', 'volume', 'openInterest'] as const

/** `filled` is 1 for a filled candle, 0 for a traded one. */
export interface Candle {
  readonly market: string
  readonly endMs: number
  open: number
  high: number
  low: number
  close: number
  volume: number
  openInterest: number
  filled: number
}

export class CandleRows {
  length = 0
  readonly market: string[] = []
  endMs: Float64Array
  open: Float64Array
  high: Float64Array
  low: Float64Array
  close: Float64Array
  volume: Float64Array
  openInterest: Float64Array
  filled: Uint8Array

  constructor(capacity = ROWS_MIN) {
    this.endMs = new Float64Array(capacity)
    this.open = new Float64Array(capacity)
    this.high = new Float64Array(capacity)
    this.low = new Float64Array(capacity)
    this.close = new Float64Array(capacity)
    this.volume = new Float64Array(capacity)
    this.openInterest = new Float64Array(capacity)
    this.filled = new Uint8Array(capacity)
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
    this.endMs.set(other.endMs.subarray(from, to), start)
    this.open.set(other.open.subarray(from, to), start)
    this.high.set(other.high.subarray(from, to), start)
    this.low.set(other.low.subarray(from, to), start)
    this.close.set(other.close.subarray(from, to), start)
    this.volume.set(other.volume.subarray(from, to), start)
    this.openInterest.set(other.openInterest.subarray(from, to), start)
    this.filled.set(other.filled.subarray(from, to), start)
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
    for (const column of DOUBLES) this[column] = grownInto(new Float64Array(capacity), this[column])
    this.filled = grownInto(new Uint8Array(capacity), this.filled)
  }
}
