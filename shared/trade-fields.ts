// The fields of the endpoint /api/v1/trades.

import type { RecordField } from './record-field.ts'

// oxfmt-ignore
export const TRADE_FIELDS = [
  { name: 'ts', type: 'integer', isWide: true, isBig: true, unit: 'none', nullable: false, meaning: 'Time of the trade by the exchange, nanoseconds since 1970-01-01 UTC' },
  { name: 'recv_ts', type: 'integer', isWide: true, isBig: true, unit: 'none', nullable: true, meaning: 'When it was first received, nanoseconds; null where it was only fetched later' },
  { name: 'market_id', type: 'string', unit: 'none', nullable: false, meaning: 'Market' },
  { name: 'trade_id', type: 'string', unit: 'none', nullable: true, meaning: 'Trade; null in old recordings that do not name it' },
  { name: 'price', type: 'number', unit: 'none', nullable: false, meaning: 'Price of the YES side or of the token, in cents' },
  { name: 'qty', type: 'number', unit: 'none', nullable: false, meaning: 'Contracts' },
  { name: 'aggressor', type: 'string', unit: 'none', nullable: false, meaning: 'What the taker did: bid (bought), ask (sold) or unknown' },
  { name: 'block', type: 'boolean', unit: 'none', nullable: true, meaning: 'Whether it was a block trade; null where the exchange does not say it' },
  { name: 'origin', type: 'string', unit: 'none', nullable: false, meaning: 'The best origin that has it: ws (recorded), import or rest (fetched later)' },
] as const satisfies readonly RecordField[]
