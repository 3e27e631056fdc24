// Private messages are not stored in the lake: fills, orders, positions and subscriptions with keys.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  allText,
  at,
  kalshiDelta,
  kalshiLine,
  polymarketChange,
  recordings,
  segmentPaths,
  segmentsOf,
} from '../support/segmented-recordings.ts'

test('private frames are in no segment, and all of them are counted', async (t) => {
  const all = await recordings(t)
  const secret = 'SECRET-0123'
  const kalshi = [
    `{"id":1,"cmd":"subscribe","params":{"channels":["orderbook_delta","fill"]}}`,
    `{"cmd":"login","api_key":"${secret}"}`,
    kalshiLine('10:00:00'),
    `{"recv_ts":${at('10:00:01')},"msg":{"type":"fill","sid":9,"msg":{"order_id":"${secret}","ts_ms":${at('23:00:00')}}}}`,
    `{"type":"user_order","sid":9,"msg":{"order_id":"${secret}"},"_received_at":${at('10:00:01')}}`,
    `[{"type":"market_position","msg":{"a":"${secret}"}},{"type":"fill","msg":{"a":"${secret}"}}]`,
    `{"recv_ts":${at('10:00:01')},"msg":[{"type":"fill","msg":{"a":"${secret}"}},${kalshiDelta('10:00:01')}]}`,
    kalshiDelta('10:00:02', { client_order_id: secret }),
    `{"type":"${'new'.repeat(40)}","msg":{"a":"${secret}"}}`,
    kalshiLine('10:00:03'),
  ]
  const segmented = await all.import('kalshi', kalshi)
  assert.deepEqual(Object.fromEntries(segmented.tally.privateFrames), {
    subscribe: 1,
    login: 1,
    fill: 3,
    user_order: 1,
    market_position: 1,
    orderbook_delta: 1,
    ['new'.repeat(40).slice(0, 40)]: 1,
  })
  assert.equal(segmented.tally.messages, 5)
  const polymarket = [
    `{"assets_ids":["7"],"type":"market"}`,
    `{"auth":{"apiKey":"${secret}"},"markets":["0x1"],"type":"user"}`,
    `{"auth":{"apiKey":"${secret}"},"assets_ids":["7"],"type":"market"}`,
    polymarketChange('10:00:00'),
    `{"event_type":"order","market":"0x1","asset_id":"7","owner":"${secret}"}`,
    `[{"event_type":"trade","market":"0x1","asset_id":"7","maker_orders":[{"owner":"${secret}"}]}]`,
    polymarketChange('10:00:01'),
  ]
  const second = await all.import('polymarket', polymarket)
  assert.deepEqual(Object.fromEntries(second.tally.privateFrames), { user: 1, market: 1, order: 1, trade: 1 })
  const text = await allText(all.lake)
  assert.ok(!text.includes(secret), text)
  assert.ok(!/fill|user_order|market_position|maker_orders|auth/.test(text), text)
  assert.deepEqual(
    (await segmentsOf(all.lake)).map(([place, , lines]) => [place, lines.length]),
    [
      ['2026-07-01 10', 5],
      ['2026-07-01 10', 3],
    ],
  )
})

test('a recording with only private frames gives no segment', async (t) => {
  const all = await recordings(t)
  const segmented = await all.import('kalshi', ['{"type":"fill","sid":1,"msg":{}}'])
  assert.deepEqual([segmented.segments.length, segmented.tally.messages], [0, 0])
  assert.deepEqual(await segmentPaths(all.lake), [])
})
