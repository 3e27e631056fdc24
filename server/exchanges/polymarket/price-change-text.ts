// The text of a `price_change` as Polymarket sends it since September 2025 → message, without parsing the JSON.

import type { FeedMessage } from '../../feed/feed-message.ts'
import type { Frame } from '../../feed/frame.ts'
import { TEXT } from '../json-text.ts'
import { readPolymarketFrame } from './frame.ts'

const TYPE = '"event_type":"price_change"'
const TIME = `"timestamp":${TEXT}`
// The type and the time stand before or after the list.
const START = new RegExp(`\\{(?:${TYPE},)?"market":${TEXT},(?:${TIME},)?"price_changes":\\[`, 'y')
const CHANGE = new RegExp(
  `\\{"asset_id":${TEXT},"price":${TEXT}(?:,"side":${TEXT})?,"size":${TEXT}(?:,"side":${TEXT})?(?:,"hash":${TEXT})?` +
    `(?:,"best_bid":${TEXT},"best_ask":${TEXT})?\\}(,?)`,
  'y',
)
const END = new RegExp(`\\](?:,${TYPE})?(?:,${TIME})?(?:,${TYPE})?\\}$`, 'y')

/** Undefined for any other text. @throws {BadLineError} */
export function readPriceChangeText(json: string): FeedMessage | undefined {
  START.lastIndex = 0
  const start = START.exec(json)
  if (start === null) return undefined
  const price_changes: Frame[] = []
  let at = START.lastIndex
  for (let comma: string | undefined = ','; comma === ','; at = CHANGE.lastIndex) {
    CHANGE.lastIndex = at
    const change = CHANGE.exec(json)
    if (change === null) return undefined
    const [, asset_id, price, first, size, second] = change
    comma = change.at(-1)
    price_changes.push({ asset_id, price, size, side: second ?? first })
  }
  END.lastIndex = at
  const end = END.exec(json)
  if (end === null) return undefined
  const [, market, time] = start
  return readPolymarketFrame({ event_type: 'price_change', market, timestamp: end[1] ?? time, price_changes })
}
