import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import * as fc from 'fast-check'
import {
  batchSize,
  finishedSpans,
  KalshiClient,
  EXCHANGE_CANDLES_MAX,
  EXCHANGE_BATCH_CANDLES_MAX,
  EXCHANGE_BATCH_MARKETS_MAX,
} from '../../server/exchanges/kalshi/rest-client.ts'
import { UpstreamError } from '../../server/upstream/upstream-error.ts'
import { type Answer, type AskedRequest, send, startUpstream } from '../support/local-upstream.ts'
import { ManualClock } from '../support/manual-clock.ts'

const NOW_MS = Date.parse('2026-09-16T12:00:00Z')
const MINUTE_MS = 60_000
const MARKET = { ticker: 'KXHIGHNY-26SEP16-B81.5', eventTicker: 'KXHIGHNY-26SEP16', seriesTicker: 'KXHIGHNY' }
const SPAN = { interval: 1, fromMs: NOW_MS - 60 * MINUTE_MS, toMs: NOW_MS } as const

async function bench(
  t: TestContext,
  script: readonly Answer[],
): Promise<{
  readonly client: KalshiClient
  readonly asked: readonly AskedRequest[]
  readonly clock: ManualClock
}> {
  const { baseUrl, asked } = await startUpstream(t, script)
  const clock = new ManualClock(NOW_MS)
  const client = new KalshiClient({
    baseUrl: `${baseUrl}/trade-api/v2`,
    userAgent: 'bookcast-test',
    clock,
    random: () => 1,
  })
  t.after(() => client.close())
  return { client, asked, clock }
}

function candle(endMs: number, volume: string): unknown {
  const price = { open_dollars: '0.4', low_dollars: '0.4', high_dollars: '0.4', close_dollars: '0.4' }
  return { end_period_ts: endMs / 1000, price, volume_fp: volume, open_interest_fp: '1.00' }
}

test('a list is read to its last page, and the cursor is sent back unchanged', async (t) => {
  const market = (index: number): unknown => ({
    ticker: `A-1-T${index}`,
    event_ticker: 'A-1',
    status: 'active',
    close_time: '2026-09-17T05:00:00Z',
  })
  const { client, asked } = await bench(t, [
    send(200, JSON.stringify({ markets: [market(1)], cursor: 'CgwI=&+/' })),
    send(200, JSON.stringify({ markets: [market(2)], cursor: '' })),
  ])
  const query = { seriesTicker: 'A', closeFromMs: NOW_MS, closeToMs: null, signal: undefined }
  const { rows } = await client.markets('live', query, new Map())
  assert.deepEqual(
    rows.map(({ ticker }) => ticker),
    ['A-1-T1', 'A-1-T2'],
  )
  const [first, second] = asked.map(({ url }) => new URL(url, 'http://local'))
  assert.equal(first?.pathname, '/trade-api/v2/markets')
  // Without a status filter the list has all statuses.
  assert.deepEqual(Object.fromEntries(first?.searchParams ?? []), {
    limit: '1000',
    series_ticker: 'A',
    min_close_ts: String(NOW_MS / 1000),
  })
  assert.equal(second?.searchParams.get('cursor'), 'CgwI=&+/')
})

test('requests wait for a rate limit without Retry-After with growing pauses', async (t) => {
  const busy = send(429, '{"error":"too many requests"}')
  const { client, clock, asked } = await bench(t, [busy, busy, send(200, '{"series":[]}')])
  await client.temperatureSeries('Climate and Weather')
  assert.equal(asked.length, 3)
  assert.match(asked[0]?.url ?? '', /category=Climate\+and\+Weather/)
  assert.deepEqual(clock.slept.slice(0, 2), [500, 1000])
})

test('a lasting rate limit is reported as one of the exchange', async (t) => {
  const { client, asked } = await bench(
    t,
    Array.from({ length: 4 }, () => send(429)),
  )
  await assert.rejects(client.temperatureSeries('Climate'), (error) => {
    assert.ok(error instanceof UpstreamError)
    assert.deepEqual([error.upstream, error.failure, asked.length], ['kalshi', 'rate_limited', 4])
    return true
  })
})

test('the synthetic candle before the range is neither requested nor accepted', async (t) => {
  const body = JSON.stringify({
    ticker: MARKET.ticker,
    candlesticks: [
      candle(SPAN.fromMs - MINUTE_MS, '5.00'),
      candle(SPAN.fromMs, '5.00'),
      candle(NOW_MS + MINUTE_MS, '5.00'),
    ],
  })
  const { client, asked } = await bench(t, [send(200, body)])
  const { rows } = await client.candles(MARKET, 'live', SPAN)
  assert.deepEqual(
    rows.map(({ end_period_ts }) => end_period_ts),
    [SPAN.fromMs],
  )
  const from = SPAN.fromMs / 1000
  assert.equal(
    asked[0]?.url,
    '/trade-api/v2/series/KXHIGHNY/markets/KXHIGHNY-26SEP16-B81.5/candlesticks' +
      `?start_ts=${from}&end_ts=${NOW_MS / 1000}&period_interval=1`,
  )
})

test('the cutoff is requested once an hour', async (t) => {
  const body = send(200, '{"market_settled_ts":"2026-07-18T00:00:00Z"}')
  const { client, asked, clock } = await bench(t, [body, body])
  assert.equal(await client.historicalCutoffMs(), Date.parse('2026-07-18T00:00:00Z'))
  await clock.sleep(59 * MINUTE_MS)
  await client.historicalCutoffMs()
  assert.equal(asked.length, 1)
  await clock.sleep(2 * MINUTE_MS)
  await client.historicalCutoffMs()
  assert.equal(asked.length, 2)
})

test('a batch is one request that costs as much as its markets', async (t) => {
  const { client, asked, clock } = await bench(t, [send(200, '{"markets":[]}')])
  const markets = Array.from({ length: 30 }, (_, index) => ({ ...MARKET, ticker: `A-1-T${index}` }))
  await client.batchCandles(markets, SPAN)
  assert.equal(asked.length, 1)
  // Thirty calls at ten a second, the first ten at once.
  const waitedMs = clock.slept.reduce((sum, ms) => sum + ms, 0)
  assert.ok(waitedMs >= 1_900 && waitedMs <= 2_100, `${waitedMs} ms`)
})

test('spans are split so that no request exceeds the exchange’s limits and no candle is requested twice', () => {
  fc.assert(
    fc.property(fc.nat({ max: 20_000 * 1440 }), fc.nat({ max: 59_999 }), (minutes, offsetMs) => {
      const fromMs = Date.parse('2026-01-01T00:00:00Z')
      const toMs = fromMs + minutes * MINUTE_MS + offsetMs
      const counts = { 1: 0, 60: 0, 1440: 0 }
      for (const span of finishedSpans(fromMs, toMs)) {
        const size = batchSize(span)
        const perMarket = Math.floor((span.toMs - span.fromMs) / (span.interval * MINUTE_MS)) + 1
        assert.ok(perMarket <= EXCHANGE_CANDLES_MAX && size >= 1 && size <= EXCHANGE_BATCH_MARKETS_MAX)
        assert.ok(size * perMarket <= EXCHANGE_BATCH_CANDLES_MAX)
        const first = Math.ceil((span.fromMs - fromMs) / (span.interval * MINUTE_MS))
        const last = Math.floor((span.toMs - fromMs) / (span.interval * MINUTE_MS))
        counts[span.interval] += last - first + 1
      }
      const days = Math.floor(minutes / 1440)
      assert.deepEqual(counts, { 1: minutes, 60: Math.floor(minutes / 60), 1440: days })
    }),
  )
})
