// Which ends of candles lie in a span of time, in pieces that one request may ask for.

import { type CandleSpan, splitSpan } from '../../exchanges/kalshi/rest-client.ts'
import type { StoredInterval } from '../../exchanges/kalshi/rest-parse.ts'

/** Every length of candle that is collected, minutes. */
export const CANDLE_INTERVALS = [1, 60, 1440] as const satisfies readonly StoredInterval[]
const MS_PER_MINUTE = 60_000

/** Ends of finished periods after `fromMs`, up to and including `toMs`, in spans that one request may ask for. */
export function finishedSpans(interval: StoredInterval, fromMs: number, toMs: number): CandleSpan[] {
  // The exchange's days end at an hour of its own; hours and minutes end on the full ones. So a day is asked for as
  // soon as an hour has ended.
  const gridMs = (interval === 1 ? 1 : 60) * MS_PER_MINUTE
  const firstMs = (Math.floor(fromMs / gridMs) + 1) * gridMs
  const lastMs = Math.floor(toMs / gridMs) * gridMs
  return firstMs > lastMs ? [] : splitSpan({ interval, fromMs: firstMs, toMs: lastMs })
}
