import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { readPrice, readQuantity } from '../../server/exchanges/kalshi/fixed-point.ts'
import type { JsonObject } from '../../shared/parsed-json.ts'
import {
  parseBatchCandles,
  parseCandles,
  parseCutoff,
  parseMarkets,
  parseSeries,
} from '../../server/exchanges/kalshi/rest-parse.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import { realDataPath } from '../support/real-data.ts'

const MARKET = { ticker: 'KXHIGHNY-26SEP16-B81.5', eventTicker: 'KXHIGHNY-26SEP16', seriesTicker: 'KXHIGHNY' }
const NOW_MS = Date.parse('2026-09-16T12:00:00Z')
const END = 1_789_480_800

const LIVE = {
  end_period_ts: END,
  yes_bid: { open_dollars: '0.4100', close_dollars: '0.4200' },
  price: {
    open_dollars: '0.4100',
    low_dollars: '0.3900',
    high_dollars: '0.4550',
    close_dollars: '0.4200',
    previous_dollars: '0.4000',
  },
  volume_fp: '1250.47',
  open_interest_fp: '50000.00',
}
const HISTORICAL = {
  end_period_ts: END,
  price: {
    open: '0.4100',
    low: '0.3900',
    high: '0.4550',
    close: '0.4200',
    mean: '0.4150',
    previous: '0.4000',
  },
  volume: '1250.47',
  open_interest: '50000.00',
}
const EXPECTED = {
  market_ticker: MARKET.ticker,
  event_ticker: MARKET.eventTicker,
  series_ticker: MARKET.seriesTicker,
  period_interval: 1,
  end_period_ts: END * 1000,
  open: 4100,
  high: 4550,
  low: 3900,
  close: 4200,
  volume: 125_047n,
  open_interest: 5_000_000n,
}

function candles(...entries: readonly unknown[]): ReturnType<typeof parseCandles> {
  return parseCandles({ ticker: MARKET.ticker, candlesticks: entries }, MARKET, 1)
}

function assertMalformed(run: () => unknown, detail: RegExp): void {
  assert.throws(run, (error) => {
    assert.ok(error instanceof UpstreamError, String(error))
    assert.equal(error.failure, 'malformed')
    assert.match(error.message, /^kalshi: /)
    assert.match(error.message, detail)
    return true
  })
}

test('live and historical field names give the same candle, exact to a hundredth of a cent', () => {
  assert.deepEqual(candles(LIVE).rows, [EXPECTED])
  assert.deepEqual(candles(HISTORICAL).rows, [EXPECTED])
})

test('integers of old archives are cents and contracts, and decimal text beside them takes precedence', () => {
  const old = {
    end_period_ts: END,
    price: { open: 41, low: 39, high: 45, close: 42 },
    volume: 1250,
    open_interest: 50_000,
  }
  assert.deepEqual(candles(old).rows, [{ ...EXPECTED, high: 4500, volume: 125_000n }])
  const both = { ...old, ...LIVE, price: { ...old.price, ...LIVE.price } }
  assert.deepEqual(candles(both).rows, [EXPECTED])
})

test('a candle without a trade is skipped, however it states its prices', () => {
  const nulls = { open_dollars: null, low_dollars: null, high_dollars: null, close_dollars: null }
  const quiet = { ...LIVE, price: { ...nulls, previous_dollars: '0.4000' }, volume_fp: '0.00' }
  const absent = { end_period_ts: END, volume_fp: '0.00', open_interest_fp: '1.00' }
  const repeated = { ...LIVE, volume_fp: '0.00' }
  assert.deepEqual(candles(quiet, absent, repeated, LIVE).rows, [EXPECTED])
  assert.deepEqual(candles(quiet, absent, repeated).rejected, [])
})

for (const [name, change] of [
  ['a volume under another name', { volume_fp: undefined, vol: '3.00' }],
  ['an open interest that is missing', { open_interest_fp: undefined }],
  ['a price finer than the store', { price: { ...LIVE.price, open_dollars: '0.41005' } }],
  ['a price in words', { price: { ...LIVE.price, open_dollars: 'N/A' } }],
  ['trades without prices', { price: {} }],
  ['a price missing among four', { price: { ...LIVE.price, close_dollars: null } }],
  ['a low above the high', { price: { ...LIVE.price, low_dollars: '0.9000' } }],
  ['a price of more than a dollar', { price: { ...LIVE.price, high_dollars: '41.0000' } }],
  ['an end in milliseconds text', { end_period_ts: '1789480800000' }],
  ['an end within a minute', { end_period_ts: END + 1 }],
  ['a negative volume', { volume_fp: '-1.00' }],
] as const) {
  test(`${name} is refused, and an upstream error if in the majority`, () => {
    const bad = { ...LIVE, ...change }
    const { rows: items, rejected } = candles(LIVE, bad)
    assert.deepEqual(items, [EXPECTED])
    assert.equal(rejected.length, 1)
    assertMalformed(() => candles(bad), /1 of 1 candlesticks/)
  })
}

test('text without a decimal point is refused as a price under the plain name, because it could be cents', () => {
  assert.throws(() => readPrice({ open: '41' }, 'open'), /open is "41"/)
  assert.equal(readPrice({ open_dollars: '1' }, 'open'), 10_000)
})

test('every decimal text reads as the integer it was written from', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 10_000 }),
      fc.integer({ min: 0, max: 10 ** 12 }),
      (price, quantity) => {
        const dollars = `${Math.floor(price / 10_000)}.${String(price % 10_000).padStart(4, '0')}`
        const contracts = `${Math.floor(quantity / 100)}.${String(quantity % 100).padStart(2, '0')}`
        for (const name of ['x', 'x_dollars']) assert.equal(readPrice({ [name]: dollars }, 'x'), price)
        for (const name of ['x', 'x_fp']) assert.equal(readQuantity({ [name]: contracts }, 'x'), quantity)
      },
    ),
  )
})

test('arbitrary JSON is refused or skipped but never breaks the parser', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.jsonValue(), fc.constant(LIVE))), (entries) => {
      try {
        for (const candle of candles(...entries).rows) assert.deepEqual(candle, EXPECTED)
      } catch (error) {
        assert.ok(error instanceof UpstreamError, String(error))
      }
    }),
  )
})

test('real frames with old and new fields side by side have equal values in both', (t) => {
  const ticker = realDataPath('exchange-frames', 'kalshi_ticker.jsonl')
  const trade = realDataPath('exchange-frames', 'kalshi_trade.jsonl')
  if (ticker === undefined || trade === undefined) {
    t.skip('real recordings not present')
    return
  }
  const pairs = {
    price: ['price', 'yes_bid', 'yes_ask', 'yes_price', 'no_price'],
    quantity: ['volume', 'open_interest', 'count'],
  }
  let compared = 0
  for (const line of [ticker, trade].flatMap((path) => readFileSync(path, 'utf8').trim().split('\n'))) {
    const { msg } = JSON.parse(line) as { msg: JsonObject }
    for (const name of pairs.price) compared += compareForms(msg, name, `${name}_dollars`, readPrice)
    for (const name of pairs.quantity) compared += compareForms(msg, name, `${name}_fp`, readQuantity)
  }
  assert.ok(compared >= 50, `${compared} pairs`)
})

function compareForms(
  msg: JsonObject,
  name: string,
  textName: string,
  read: (object: JsonObject, name: string) => number | null,
): number {
  const [old, text] = [msg[name], msg[textName]]
  if (typeof old !== 'number' || typeof text !== 'string') return 0
  // The old form has whole contracts only.
  const isWhole = /\.00(00)?$/.test(text)
  if (isWhole || read === readPrice)
    assert.equal(read({ [name]: old }, name), read({ [textName]: text }, name), text)
  return 1
}

test('temperature series are picked by station table, title or tags, the rest of the category is left out', () => {
  const entry = { frequency: 'daily', category: 'Climate and Weather', settlement_sources: [], tags: null }
  const { rows: items } = parseSeries(
    {
      series: [
        { ...entry, ticker: 'KXHIGHNY', title: 'NYC high' },
        { ...entry, ticker: 'KXLOWTCHI', title: 'Chicago low' },
        { ...entry, ticker: 'KXLOWTXYZ', title: 'Lowest temperature in Xyz' },
        { ...entry, ticker: 'KXTEMPMIAH', title: 'Hourly temperature in Miami', frequency: 'hourly' },
        { ...entry, ticker: 'KXLOW', title: 'Earnings of a retailer' },
        { ...entry, ticker: 'KXHURR', title: 'Hurricanes', tags: ['Hurricanes'] },
      ],
    },
    NOW_MS,
  )
  assert.deepEqual(
    items.map(({ ticker, measure_type, station_code }) => [ticker, measure_type, station_code]),
    [
      ['KXHIGHNY', 'high', 'NYC'],
      ['KXLOWTCHI', 'low', 'MDW'],
      ['KXLOWTXYZ', 'low', null],
      ['KXTEMPMIAH', 'hourly', null],
    ],
  )
})

test('a market keeps every status and result, and takes its series from its event', () => {
  const entry = {
    ticker: 'KXHIGHNY-26SEP16-T75',
    event_ticker: 'KXHIGHNY-26SEP16',
    status: 'amended',
    result: 'scalar',
    close_time: '2026-09-17T05:00:00Z',
    created_time: '2025-10-06T19:22:55.893694Z',
    settlement_value_dollars: '0.5000',
    expiration_value: '',
    floor_strike: 4.25,
    rules_primary: 'Verified from the report (CLINYC).',
  }
  const event = { ticker: 'KXHIGHNY-26SEP16', seriesTicker: 'HIGHNY', title: 'NYC on Sep 16' }
  const { rows: items } = parseMarkets(
    { markets: [entry, { ...entry, event_ticker: 'KXA-1' }] },
    NOW_MS,
    new Map([[event.ticker, event]]),
  )
  const [market, other] = items
  assert.ok(market !== undefined)
  assert.deepEqual(
    [market.series_ticker, market.status, market.result, market.settlement_value, market.title],
    ['HIGHNY', 'amended', 'scalar', 5000, 'NYC on Sep 16'],
  )
  assert.equal(market.station_code, 'NYC')
  assert.equal(market.created_time, Date.parse('2025-10-06T19:22:55.893Z'))
  assert.equal(market.expiration_value, null)
  assert.equal(market.open_time, null)
  assert.equal(other?.series_ticker, 'KXA')
})

test('responses of another shape are upstream errors', () => {
  assertMalformed(() => parseCandles({}, MARKET, 1), /candlesticks is null/)
  assertMalformed(() => parseMarkets({ markets: [{}] }, NOW_MS, new Map()), /1 of 1 markets/)
  assertMalformed(() => parseSeries({ series: {} }, NOW_MS), /not a list/)
  assertMalformed(() => parseCutoff({ market_settled_ts: 1 }, 'market_settled_ts'), /market_settled_ts/)
  assertMalformed(() => parseCutoff({}, 'trades_created_ts'), /trades_created_ts/)
})

test('a batch gives each market its candles and refuses markets that were not requested', () => {
  const asked = new Map([[MARKET.ticker, MARKET]])
  const good = { market_ticker: MARKET.ticker, candlesticks: [LIVE] }
  const stranger = { market_ticker: 'KXOTHER-1-2', candlesticks: [LIVE] }
  const { rows: items, rejected } = parseBatchCandles({ markets: [good, stranger] }, asked, 1)
  assert.deepEqual(items, [EXPECTED])
  assert.equal(rejected.length, 1)
})
