// The trades that single messages state: real frames against values read by hand, and the forms that the exchanges have had.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { exchangeOf } from '../../server/exchanges/registry.ts'
import { BadLineError } from '../../server/feed/bad-line.ts'
import type { TradeMessage } from '../../server/feed/trade-message.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { realDataPath } from '../support/real-data.ts'

const KALSHI_REAL = [
  'KXSOLD-26FEB1217-T79.9999 1770897981 7700 75 bid f851595a',
  'KXBTCD-26FEB1217-T67749.99 1770897984 5700 90 ask d6af7817',
  'KXBTCD-26FEB1217-T67749.99 1770897985 6100 100 bid a6c51dd7',
  'KXBTCD-26FEB1217-T67749.99 1770897985 6100 90 bid 0c18ff59',
  'KXBTCD-26FEB1217-T67749.99 1770897985 6200 26 bid 6f0cec55',
  'KXBTCMINMON-BTC-26FEB28-5750000 1770897988 2600 41 bid 9ee5345f',
  'KXBTCMINMON-BTC-26FEB28-5750000 1770897988 2700 83 bid 7f6a51f6',
  'KXBTCMINMON-BTC-26FEB28-5750000 1770897988 2800 26 bid a49ab66f',
  'KXBTCMINMON-BTC-26FEB28-5750000 1770897988 2800 88 bid 0e5ea7cf',
  'KXBTCMINMON-BTC-26FEB28-5750000 1770897988 2800 167 bid 10604b7e',
]
/** Last digits of the token, ms, 1/10000 dollar, contracts, side, first digits of the transaction. */
const POLYMARKET_REAL = [
  '823784781 1770921571394 4600 0.2 ask 0xdfcc917b',
  '276168668 1770921572251 4900 5 bid 0x328be078',
  '491747956 1770921574972 5300 1 ask 0x82acb665',
  '491747956 1770921575414 5400 37.93 bid 0x490e378e',
  '823784781 1770921575967 4500 60 ask 0x28ea3c6b',
  '491747956 1770921576085 5500 26 bid 0x310a83b4',
  '491747956 1770921576122 5500 9 bid 0x359af9be',
  '491747956 1770921576651 5400 18.86 ask 0xd0922d97',
  '823784781 1770921576801 4700 11.276594 bid 0x129bfa41',
  '491747956 1770921576946 5400 2.648147 bid 0x4eda919a',
]

async function realTrades(source: LobSource): Promise<TradeMessage[] | undefined> {
  const path = realDataPath('exchange-frames', `${source}_trade.jsonl`)
  if (path === undefined) return undefined
  const lines = (await readFile(path, 'utf8')).trim().split('\n')
  return lines.map((line) => {
    const trade = exchangeOf(source).trades?.ofFrame(JSON.parse(line))
    assert.ok(trade !== undefined, line)
    return trade
  })
}

test('real Kalshi trades', async (t) => {
  const trades = await realTrades('kalshi')
  if (trades === undefined) return t.skip('no real recordings here')
  const texts = trades.map(
    ({ marketId, ts, tsDigits, price, qty, aggressor, id }) =>
      `${marketId} ${ts / 1_000_000_000n}${tsDigits === 0 ? '' : '?'} ${price} ${qty / 1e6} ${aggressor} ${id?.slice(0, 8)}`,
  )
  assert.deepEqual(texts, KALSHI_REAL)
})

test('real Polymarket trades', async (t) => {
  const trades = await realTrades('polymarket')
  if (trades === undefined) return t.skip('no real recordings here')
  const texts = trades.map(
    ({ marketId, ts, price, qty, aggressor, id }) =>
      `${marketId.slice(-9)} ${ts / 1_000_000n} ${price} ${qty / 1e6} ${aggressor} ${id?.slice(0, 10)}`,
  )
  assert.deepEqual(texts, POLYMARKET_REAL)
  assert.ok(trades.every(({ id, marketId }) => id?.endsWith(`:${marketId.split(':')[1]}`)))
})

const KALSHI = {
  trade_id: 'a',
  market_ticker: 'KXRAIN-1',
  yes_price_dollars: '0.4650',
  count_fp: '1.50',
  ts: 1_770_897_981,
}
const POLYMARKET = {
  event_type: 'last_trade_price',
  market: '0xaa',
  asset_id: '7',
  price: '0.5',
  size: '2',
  side: 'BUY',
  timestamp: '1770921571394',
}
const ofKalshi = (content: object) =>
  exchangeOf('kalshi').trades?.ofFrame({ type: 'trade', sid: 1, msg: { ...KALSHI, ...content } })
const ofPolymarket = (content: object) =>
  exchangeOf('polymarket').trades?.ofFrame({ ...POLYMARKET, ...content })

test('the forms of a trade', () => {
  const cases: [string, TradeMessage | undefined, Partial<TradeMessage>][] = [
    [
      'the taker’s side of the book wins over the leg',
      ofKalshi({ taker_book_side: 'ask', taker_side: 'yes' }),
      { aggressor: 'ask' },
    ],
    ['the taker’s leg', ofKalshi({ taker_outcome_side: 'no' }), { aggressor: 'ask' }],
    ['no side', ofKalshi({}), { aggressor: 'unknown', block: null, tsDigits: 0 }],
    ['a block trade', ofKalshi({ is_block_trade: true }), { block: true }],
    [
      'cents',
      ofKalshi({ yes_price_dollars: undefined, yes_price: 7, count_fp: undefined, count: 3 }),
      { price: 700, qty: 3_000_000 },
    ],
    ['a finer time', ofKalshi({ ts_ms: 1_770_897_981_250 }), { ts: 1_770_897_981_250_000_000n, tsDigits: 3 }],
    [
      'a price finer than the unit',
      ofKalshi({ yes_price_dollars: '0.46505' }),
      { price: 4651, isRounded: true },
    ],
    [
      'a finer price that is rounded down',
      ofPolymarket({ price: 0.123_449_999 }),
      { price: 1234, isRounded: true },
    ],
    [
      'trailing zeros are no finer price',
      ofPolymarket({ price: '0.500000' }),
      { price: 5000, isRounded: false },
    ],
    ['no transaction', ofPolymarket({}), { id: null, isUnique: false, tsDigits: 3 }],
    [
      'seconds',
      ofPolymarket({ timestamp: '1770921571', transaction_hash: '0x1' }),
      { id: '0x1:7', tsDigits: 0 },
    ],
  ]
  for (const [name, trade, expected] of cases) {
    assert.ok(trade !== undefined, name)
    assert.deepEqual({ ...trade, ...expected }, trade, name)
  }
  assert.equal(exchangeOf('kalshi').trades?.ofFrame({ type: 'ticker', msg: KALSHI }), undefined)
  assert.equal(ofPolymarket({ event_type: 'book' }), undefined)
})

test('malformed trades are refused', () => {
  const cases = [
    () => ofKalshi({ trade_id: '' }),
    () => ofKalshi({ market_ticker: 7 }),
    () => ofKalshi({ yes_price_dollars: '1.5' }),
    () => ofKalshi({ yes_price_dollars: null, yes_price: 46.5 }),
    () => ofKalshi({ count_fp: '-1' }),
    () => ofKalshi({ ts: 'soon' }),
    () => ofPolymarket({ price: '-0.1' }),
    () => ofPolymarket({ price: 'x' }),
    () => ofPolymarket({ size: '0.0000001' }),
    () => ofPolymarket({ timestamp: undefined }),
    () => ofPolymarket({ asset_id: '' }),
  ]
  for (const [index, read] of cases.entries()) assert.throws(read, BadLineError, `case ${index}`)
})
