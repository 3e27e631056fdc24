// Which markets are followed, from real responses of the exchanges' list endpoints.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { kalshiDirectory } from '../../server/exchanges/kalshi/directory.ts'
import { polymarketDirectory } from '../../server/exchanges/polymarket/directory.ts'
import { UpstreamHttp } from '../../server/upstream/upstream-http.ts'
import { send, startUpstream } from '../support/local-upstream.ts'
import type { Answer } from '../support/local-upstream.ts'

const NOW_MS = Date.parse('2026-06-30T13:58:00Z')
const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
const signal = new AbortController().signal

async function upstream(t: TestContext, script: readonly Answer[]) {
  const { baseUrl, asked } = await startUpstream(t, script)
  const rate = { burst: 100, intervalMs: 1 }
  const http = new UpstreamHttp({ name: 'demo', baseUrl, userAgent: 'test', rate, attemptsMax: 1 })
  t.after(() => http.close())
  return { http, asked }
}

function events(markets: readonly object[], cursor: string | null = ''): Answer {
  return send(
    200,
    JSON.stringify({ events: [{ event_ticker: 'E', markets }, { event_ticker: 'F' }], cursor }),
  )
}

test('lists the markets of a Kalshi series that trade or are about to, over all pages', async (t) => {
  const { http, asked } = await upstream(t, [
    events(
      [
        { ticker: 'A', status: 'active' },
        { ticker: 'P', status: 'inactive' },
        { ticker: 'Z', status: 'finalized' },
      ],
      'next page',
    ),
    events([{ ticker: 'B', status: 'active' }], null),
    events([
      { ticker: 'SOON', status: 'initialized', open_time: '2026-06-30T14:00:00Z' },
      { ticker: 'LATER', status: 'initialized', open_time: '2026-07-01T14:00:00Z' },
    ]),
  ])
  const markets = await kalshiDirectory(http, ['KXHIGHNY'], clock).list(signal)
  assert.deepEqual(
    markets,
    ['A', 'P', 'B', 'SOON'].map((id) => ({ id, marketId: id, series: 'KXHIGHNY' })),
  )
  assert.deepEqual(
    asked.map(({ url }) => {
      const { searchParams } = new URL(url, 'http://x')
      return [searchParams.get('status'), searchParams.get('cursor')]
    }),
    [
      ['open', null],
      ['open', 'next page'],
      ['unopened', null],
    ],
  )
})

for (const [what, answer] of [
  ['an error', send(500, 'no')],
  ['no JSON', send(200, '<html>')],
  ['another form', send(200, '{"markets":[]}')],
  ['markets without tickers', events([{ status: 'active' }])],
] as const) {
  test(`${what} is an error that names the upstream, not an empty list`, async (t) => {
    const { http } = await upstream(t, [answer])
    await assert.rejects(kalshiDirectory(http, ['KXHIGHNY'], clock).list(signal), /^UpstreamError: demo: /)
  })
}

test('lists both tokens of Polymarket events from yesterday to the day after tomorrow', async (t) => {
  const market = {
    conditionId: '0xab',
    clobTokenIds: '["111", "222"]',
    closed: false,
    enableOrderBook: true,
    question: 'Will the highest temperature in NYC be 94-95°F on June 30?',
    outcomes: '["Yes", "No"]',
    slug: 'highest-temperature-in-nyc-on-june-30-2026-94-95f',
  }
  const closed = { ...market, conditionId: '0xcd', closed: true }
  const nameless = { ...market, conditionId: '0xef', clobTokenIds: '["333"]', outcomes: undefined }
  const { http, asked } = await upstream(t, [
    send(200, '[]'),
    send(200, JSON.stringify([{ id: '1', markets: [market, closed, nameless] }])),
    send(200, '[]'),
    send(200, '[]'),
  ])
  const series = 'highest-temperature-in-nyc'
  const markets = await polymarketDirectory(http, [series], clock).list(signal)
  assert.deepEqual(markets, [
    ...['Yes', 'No'].map((outcome, index) => {
      const id = ['111', '222'][index]
      return { id, marketId: `0xab:${id}`, series, words: { question: market.question, outcome } }
    }),
    { id: '333', marketId: '0xef:333', series },
  ])
  assert.deepEqual(
    asked.map(({ url }) => url),
    ['june-29', 'june-30', 'july-1', 'july-2'].map((day) => `/events?slug=${series}-on-${day}-2026`),
  )
})
