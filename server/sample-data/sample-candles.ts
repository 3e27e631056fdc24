// The candles of the sample's trades, as the exchange would make them: only periods with trades have one.

import { seriesOfTicker } from '../../shared/series-name.ts'
import { QTY_UNITS_PER_CONTRACT } from '../../shared/lob-v1.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { MS_PER_MINUTE, NS_PER_MS } from '../../shared/utc-date.ts'
import type { SimulatedTrade } from './recorded-stream.ts'

/** Volumes are in 1/100 contract. */
const QTY_PER_VOLUME = BigInt(QTY_UNITS_PER_CONTRACT / 100)

/** A market's candles of 1, 60 and 1440 minutes. `trades` are ordered by time. */
export function candlesOf(trades: readonly SimulatedTrade[]): StoredCandle[] {
  let openInterest = 0n
  const asCandles = trades.map(({ market: { id }, ts, price, qty }): StoredCandle => {
    const volume = BigInt(qty) / QTY_PER_VOLUME
    // Half of the volume opens positions, the rest changes hands.
    openInterest += volume / 2n
    return {
      market_ticker: id,
      event_ticker: id.slice(0, id.lastIndexOf('-')),
      series_ticker: seriesOfTicker(id),
      period_interval: 1,
      // A trade at the end of a period belongs to that period.
      end_period_ts: Number((ts + NS_PER_MS - 1n) / NS_PER_MS),
      open: price,
      high: price,
      low: price,
      close: price,
      volume,
      open_interest: openInterest,
    }
  })
  return ([1, 60, 1440] as const).flatMap((interval) => rolledUp(asCandles, interval))
}

function rolledUp(
  candles: readonly StoredCandle[],
  interval: StoredCandle['period_interval'],
): StoredCandle[] {
  const lengthMs = interval * MS_PER_MINUTE
  const periods = new Map<number, StoredCandle>()
  for (const candle of candles) {
    const endTs = Math.ceil(candle.end_period_ts / lengthMs) * lengthMs
    const before = periods.get(endTs)
    periods.set(endTs, {
      ...candle,
      period_interval: interval,
      end_period_ts: endTs,
      open: before?.open ?? candle.open,
      high: Math.max(before?.high ?? 0, candle.high),
      low: Math.min(before?.low ?? candle.low, candle.low),
      volume: (before?.volume ?? 0n) + candle.volume,
    })
  }
  return [...periods.values()]
}
