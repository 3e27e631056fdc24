// The candle: every field, declared once in serving order (contract.md 15), and the intervals. Lake and store hold prices in
// 1/10000 dollar and quantities in 1/100 contract. Only workers/records/record-columns.ts rounds them to the served whole cents
// and contracts.

import type { RecordField } from './record-field.ts'

// oxfmt-ignore
export const CANDLE_FIELDS = [
  { name: 'market_ticker', type: 'string', unit: 'none', nullable: false, meaning: 'Market ticker' },
  { name: 'period_interval', type: 'integer', unit: 'none', nullable: false, meaning: 'Candle length, minutes' },
  { name: 'end_period_ts', type: 'instant', unit: 'none', nullable: false, meaning: 'End of the candle' },
  { name: 'open', type: 'integer', unit: 'none', nullable: false, meaning: 'Open price, cents' },
  { name: 'high', type: 'integer', unit: 'none', nullable: false, meaning: 'High price, cents' },
  { name: 'low', type: 'integer', unit: 'none', nullable: false, meaning: 'Low price, cents' },
  { name: 'close', type: 'integer', unit: 'none', nullable: false, meaning: 'Close price, cents' },
  { name: 'volume', type: 'integer', unit: 'none', nullable: false, isWide: true, meaning: 'Traded volume, contracts' },
  { name: 'open_interest', type: 'integer', unit: 'none', nullable: false, isWide: true, meaning: 'Open interest, contracts' },
  { name: 'filled', type: 'boolean', unit: 'none', nullable: false, meaning: 'True for a forward fill, false for real trades' },
] as const satisfies readonly RecordField[]

/** Minutes. 1, 60 and 1440 are stored; the others are built from 1. */
export const CANDLE_INTERVALS = [1, 5, 15, 30, 60, 1440] as const
export type CandleInterval = (typeof CANDLE_INTERVALS)[number]

/** The stored interval that a request for `interval` reads. */
export function storedIntervalOf(interval: CandleInterval): 1 | 60 | 1440 {
  return interval === 60 || interval === 1440 ? interval : 1
}
