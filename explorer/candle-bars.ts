// Candles as columns by time.

import type { Candle } from '../clients/typescript/bookcast.ts'

export class CandleBars {
  /** Ends of the candles, ms since the epoch. */
  readonly times: number[] = []
  readonly opens: number[] = []
  readonly highs: number[] = []
  readonly lows: number[] = []
  readonly closes: number[] = []
  readonly volumes: number[] = []
  readonly openInterests: number[] = []

  add(candles: readonly Candle[]): void {
    for (const candle of candles) {
      this.times.push(Date.parse(candle.end_period_ts))
      this.opens.push(candle.open)
      this.highs.push(candle.high)
      this.lows.push(candle.low)
      this.closes.push(candle.close)
      this.volumes.push(candle.volume)
      this.openInterests.push(candle.open_interest)
    }
  }
}
