// The text of an `orderbook_delta` as Kalshi sends it since 2026 → message, without parsing the JSON.

import type { FeedMessage } from '../../feed/feed-message.ts'
import { INTEGER, TEXT } from '../json-text.ts'
import { readKalshiFrame } from './frame.ts'

const DELTA = new RegExp(
  `^\\{"type":"orderbook_delta","sid":${INTEGER},"seq":${INTEGER},"msg":\\{"market_ticker":${TEXT}(?:,"market_id":${TEXT})?` +
    `,"price_dollars":${TEXT},"delta_fp":${TEXT},"side":${TEXT}(?:,"ts":${TEXT})?(?:,"ts_ms":${INTEGER})?\\}\\}$`,
)

/** Undefined for any other text. @throws {BadLineError} */
export function readDeltaText(json: string): FeedMessage | undefined {
  const match = DELTA.exec(json)
  if (match === null) return undefined
  const [, sid, seq, market_ticker, , price_dollars, delta_fp, side, ts, ms] = match
  const msg = { market_ticker, price_dollars, delta_fp, side, ts, ts_ms: ms === undefined ? ms : Number(ms) }
  return readKalshiFrame({ type: 'orderbook_delta', sid: Number(sid), seq: Number(seq), msg })
}
