// The ends of candles in a span of time, in pieces within the limit of one request.

import { type CandleSpan, splitSpan } from '../../exchanges/kalshi/rest-client.ts'
import { MS_PER_MINUTE } from '../../../shared/utc-date.ts'
import type { StoredInterval } from '../../exchanges/kalshi/rest-parse.ts'

/** Every candle length that is collected, minutes. */
export const CANDLE_INTERVALS = [1, 60, 1440] as const satisfies readonly StoredInterval[]

/** Ends of finished periods after `fromMs`, up to and including `toMs`, in spans within the limit of one request. */
export function finishedSpans(interval: StoredInterval, fromMs: number, toMs: number): CandleSpan[] {
  // Minutes and hours end on the full minute and hour. The exchange's days end at an hour of its own, so daily candles are
  // requested after each hour.
  const gridMs = (interval === 1 ? 1 : 60) * MS_PER_MINUTE
  const firstMs = (Math.floor(fromMs / gridMs) + 1) * gridMs
  const lastMs = Math.floor(toMs / gridMs) * gridMs
  return firstMs > lastMs ? [] : splitSpan({ interval, fromMs: firstMs, toMs: lastMs })
}
