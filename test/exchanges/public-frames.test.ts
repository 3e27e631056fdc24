// Which parts of a frame are kept: only those on the list of public ones, so that unknown parts are left out.

import assert from 'node:assert/strict'
import { readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { exchangeOf } from '../../server/exchanges/registry.ts'
import type { Frame } from '../../server/feed/frame.ts'
import { realDataPath } from '../support/real-data.ts'

const kalshi = exchangeOf('kalshi').publicPart
const polymarket = exchangeOf('polymarket').publicPart

const DELTA = {
  market_ticker: 'A-B',
  price_dollars: '0.1000',
  delta_fp: '7.00',
  side: 'yes',
  ts_ms: 1_782_316_195_033,
}
const TOKEN = { market: '0x1', asset_id: '7' }

test('kalshi: frames of public channels, their replies and the recorder’s own are kept unchanged', () => {
  const frames: Frame[] = [
    { type: 'orderbook_snapshot', sid: 1, seq: 1, msg: { market_ticker: 'A-B' } },
    { type: 'orderbook_delta', sid: 1, seq: 2, msg: DELTA },
    { type: 'ticker', sid: 2, msg: { market_ticker: 'A-B' }, _received_at: '2026-07-01T00:00:00Z' },
    { type: 'trade', sid: 3, seq: 1, msg: { trade_id: 'x' } },
    { type: 'market_lifecycle_v2', sid: 4, seq: 1, msg: { event_type: 'settled' } },
    { type: 'event_lifecycle', sid: 4, seq: 2, msg: {} },
    { id: 1, type: 'subscribed', msg: { channel: 'orderbook_delta', sid: 1 } },
    { id: 2, sid: 1, seq: 3, type: 'ok', msg: { market_tickers: ['A-B'] } },
    { id: 3, sid: 1, seq: 4, type: 'unsubscribed' },
    { id: 4, type: 'error', msg: { code: 10, msg: 'Channel error' } },
    { type: 'disconnect' },
    { event_type: 'disconnect', timestamp: '1782316195033' },
    { type: 'heartbeat', ts_ms: 1, timestamp: '1' },
    {
      id: 1,
      cmd: 'subscribe',
      params: { channels: ['orderbook_delta', 'trade'], market_tickers: ['A-B'], use_yes_price: true },
    },
    {
      id: 2,
      cmd: 'update_subscription',
      params: { sids: [1], action: 'add_markets', market_tickers: ['A-C'] },
    },
    { id: 3, cmd: 'unsubscribe', params: { sids: [1] }, recv_ts: 1_782_316_195_033 },
  ]
  for (const frame of frames) assert.equal(kalshi(frame), frame, JSON.stringify(frame))
})

test('kalshi: fills, orders, positions and unknown messages are private', () => {
  const frames: Frame[] = [
    { type: 'fill', sid: 9, msg: { order_id: 'x' } },
    { type: 'user_order', sid: 9, msg: { order_id: 'x' } },
    { type: 'user_orders', sid: 9, msg: {} },
    { type: 'market_position', sid: 9, msg: { position: 7 } },
    { type: 'market_positions', sid: 9, msg: {} },
    { type: 'order_group_updates', sid: 9, msg: {} },
    { type: 'rfq_created', sid: 9, msg: {} },
    { type: 'quote_created', sid: 9, msg: {} },
    { type: 'communications', sid: 9, msg: {} },
    { type: 'something_new', msg: {} },
    { type: 7 },
    { msg: {} },
    { id: 1, type: 'subscribed', msg: { channel: 'fill', sid: 9 } },
    { cmd: 'login', api_key: 'x' },
    { cmd: 'subscribe', params: { channels: ['orderbook_delta'] }, headers: { 'KALSHI-ACCESS-KEY': 'x' } },
    { cmd: 'subscribe', params: { channels: ['orderbook_delta'], auth: 'x' } },
    { cmd: 'subscribe', params: { channels: ['fill', 'user_orders'] } },
    { cmd: 'subscribe', params: { channels: 'fill' } },
    { cmd: 'subscribe', params: 'x' },
    { cmd: 'subscribe', params: { channels: ['orderbook_delta'] }, _received_at: { key: 'x' } },
  ]
  for (const frame of frames) assert.equal(kalshi(frame), undefined, JSON.stringify(frame))
})

test('kalshi: parts of public frames on the client’s own orders and channels are left out', () => {
  assert.deepEqual(
    kalshi({
      type: 'orderbook_delta',
      sid: 1,
      seq: 2,
      msg: { ...DELTA, client_order_id: 'x', subaccount: 3 },
    }),
    { type: 'orderbook_delta', sid: 1, seq: 2, msg: DELTA },
  )
  assert.deepEqual(
    kalshi({
      id: 1,
      cmd: 'subscribe',
      params: { channels: ['orderbook_delta', 'fill'], use_yes_price: true },
    }),
    { id: 1, cmd: 'subscribe', params: { channels: ['orderbook_delta'], use_yes_price: true } },
  )
})

test('polymarket: frames of the market channel and commands without keys are kept unchanged', () => {
  const frames: Frame[] = [
    { event_type: 'book', ...TOKEN, bids: [], asks: [] },
    { ...TOKEN, bids: [], asks: [], timestamp: '1' },
    { ...TOKEN, buys: [], sells: [] },
    { market: '0x1', price_changes: [] },
    { ...TOKEN, changes: [] },
    { event_type: 'price_change', market: '0x1', price_changes: [] },
    { event_type: 'tick_size_change', ...TOKEN },
    { event_type: 'last_trade_price', ...TOKEN, price: '0.46', transaction_hash: '0x2' },
    { event_type: 'best_bid_ask', ...TOKEN },
    { event_type: 'new_market', assets_ids: ['7'], market: '0x1' },
    { event_type: 'market_resolved', assets_ids: ['7'], market: '0x1' },
    { event_type: 'disconnect', timestamp: '1' },
    { type: 'disconnect' },
    { type: 'heartbeat', ts_ms: 1, timestamp: '1' },
    { assets_ids: ['7'], type: 'market', initial_dump: true },
    { assets_ids: ['7'], operation: 'unsubscribe', initial_dump: true },
    { type: 'unsubscribe', assets_ids: ['7'], operation: 'unsubscribe', initial_dump: true, recv_ts: '1' },
  ]
  for (const frame of frames) assert.equal(polymarket(frame), frame, JSON.stringify(frame))
})

test('polymarket: orders and trades of a user, subscriptions with keys and unknown messages are private', () => {
  const auth = { apiKey: 'k', secret: 's', passphrase: 'p' }
  const frames: Frame[] = [
    { event_type: 'trade', ...TOKEN, owner: 'me', maker_orders: [] },
    { event_type: 'order', ...TOKEN, owner: 'me' },
    { ...TOKEN, price: '0.4', size: '1', owner: 'me' },
    { event_type: 'book', ...TOKEN, bids: [], owner: 'me' },
    { type: 'user', markets: ['0x1'], auth },
    { assets_ids: ['7'], type: 'user', auth },
    { assets_ids: ['7'], type: 'market', auth },
    { assets_ids: ['7'], type: 'market', auth: {} },
    { assets_ids: ['7'], type: 'user' },
    { assets_ids: 'x', type: 'market' },
    { assets_ids: ['7'], type: 'market', ts: { secret: 's' } },
    { event_type: 'something_new', ...TOKEN },
    { market: '0x1' },
  ]
  for (const frame of frames) assert.equal(polymarket(frame), undefined, JSON.stringify(frame))
})

test('real frames of both exchanges are public', (t) => {
  const directory = realDataPath('exchange-frames')
  if (directory === undefined) {
    t.skip('the real recordings are not here')
    return
  }
  let count = 0
  for (const name of readdirSync(directory, { recursive: true }).map(String)) {
    const path = join(directory, name)
    if (!statSync(path).isFile() || !/\.(?:jsonl|json)$/.test(name)) continue
    const publicPart = name.startsWith('kalshi') ? kalshi : polymarket
    const text = readFileSync(path, 'utf8')
    const values: unknown[] = name.endsWith('.jsonl')
      ? text
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line) as unknown)
      : [JSON.parse(text)]
    for (const frame of values.flat() as Frame[]) {
      assert.equal(publicPart(frame), frame, `${name}: ${JSON.stringify(frame).slice(0, 200)}`)
      count++
    }
  }
  assert.ok(count > 0)
})
