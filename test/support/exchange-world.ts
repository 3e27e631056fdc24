// A small exchange for tests: one series, three events of two markets, candles of every minute with a trade. Responses have the
// shapes of the real REST API, including old and new names of fields.

import { type Answer, type AskedRequest, send } from './local-upstream.ts'

export const SERIES = 'KXHIGHNY'
/** Markets settled before this are only on the historical routes. */
export const CUTOFF_MS = Date.parse('2026-07-18T00:00:00Z')

interface SimulatedMarket {
  readonly ticker: string
  readonly event: string
  readonly openMs: number
  readonly closeMs: number
  readonly status: string
  readonly result: string
}

const HOUR_MS = 3_600_000

function marketsOf(event: string, closeMs: number, status: string): SimulatedMarket[] {
  return ['T75', 'B75.5'].map((strike, index) => ({
    ticker: `${event}-${strike}`,
    event,
    openMs: closeMs - 39 * HOUR_MS,
    closeMs,
    status,
    result: status === 'active' ? '' : index === 0 ? 'yes' : 'no',
  }))
}

export const MARKETS: readonly SimulatedMarket[] = [
  ...marketsOf('KXHIGHNY-26JUL10', Date.parse('2026-07-11T05:00:00Z'), 'finalized'),
  ...marketsOf('KXHIGHNY-26AUG28', Date.parse('2026-08-29T05:00:00Z'), 'finalized'),
  ...marketsOf('KXHIGHNY-26AUG30', Date.parse('2026-08-31T05:00:00Z'), 'active'),
]

/** There is a trade in every 97th minute. */
export function tradedEnds(market: SimulatedMarket): number[] {
  const ends: number[] = []
  for (let ms = market.openMs + 97 * 60_000; ms <= market.closeMs; ms += 97 * 60_000) ends.push(ms)
  return ends
}

/** Answers a request below the API's base path; undefined if there is no such route. */
export function exchangeAnswer(request: AskedRequest, basePath: string): Answer | undefined {
  const url = new URL(request.url, 'http://local')
  const path = url.pathname.slice(basePath.length)
  const query = url.searchParams
  if (path === '/series') return json({ series: [seriesEntry(SERIES), RAIN] })
  if (path === '/historical/cutoff') return json({ market_settled_ts: new Date(CUTOFF_MS).toISOString() })
  if (path === '/events') return json({ events: eventEntries(query), cursor: '' })
  if (path === '/markets') return marketPage(query, (market) => settledMs(market) >= CUTOFF_MS)
  if (path === '/historical/markets') return marketPage(query, (market) => settledMs(market) < CUTOFF_MS)
  if (path === '/markets/candlesticks') {
    const markets = (query.get('market_tickers') ?? '').split(',').map((ticker) => ({
      market_ticker: ticker,
      candlesticks: candlesOf(ticker, query, 'live'),
    }))
    return json({ markets })
  }
  const match = /^\/(series\/[^/]+|historical)\/markets\/([^/]+)\/candlesticks$/.exec(path)
  if (match === null) return undefined
  const form = match[1] === 'historical' ? 'historical' : 'live'
  const ticker = decodeURIComponent(match[2] ?? '')
  return json({ ticker, candlesticks: candlesOf(ticker, query, form) })
}

function json(value: unknown): Answer {
  return send(200, JSON.stringify(value), { 'content-type': 'application/json' })
}

const RAIN = {
  ticker: 'KXRAINNYC',
  frequency: 'daily',
  title: 'Will it rain in NYC?',
  category: 'Climate and Weather',
  tags: null,
  settlement_sources: [],
}

function seriesEntry(ticker: string): Record<string, unknown> {
  return {
    ticker,
    frequency: 'daily',
    title: 'Highest temperature in NYC',
    category: 'Climate and Weather',
    tags: ['Daily temperature'],
    settlement_sources: [{ name: 'NWS', url: 'https://example.org' }],
    contract_url: 'https://example.org/contract.pdf',
    fee_type: 'quadratic',
    fee_multiplier: 1,
  }
}

/** Events with a market that closes at or after the requested instant. */
function eventEntries(query: URLSearchParams): Record<string, unknown>[] {
  const minMs = Number(query.get('min_close_ts') ?? 0) * 1000
  const listed = MARKETS.filter(({ closeMs }) => closeMs >= minMs)
  return [...new Set(listed.map(({ event }) => event))].map((event) => ({
    event_ticker: event,
    series_ticker: SERIES,
    title: `Highest temperature in NYC on ${event.slice(-5)}?`,
    mutually_exclusive: true,
  }))
}

function settledMs(market: SimulatedMarket): number {
  return market.status === 'active' ? Number.POSITIVE_INFINITY : market.closeMs + 3 * HOUR_MS
}

/** Pages of two entries, so that every list has several pages. */
function marketPage(query: URLSearchParams, isOnRoute: (market: SimulatedMarket) => boolean): Answer {
  const minMs = Number(query.get('min_close_ts') ?? 0) * 1000
  const maxMs = Number(query.get('max_close_ts') ?? 1e12) * 1000
  const all = MARKETS.filter(isOnRoute).filter(({ closeMs }) => closeMs >= minMs && closeMs <= maxMs)
  const at = Number(query.get('cursor') ?? 0)
  const next = at + 2 < all.length ? String(at + 2) : ''
  return json({ markets: all.slice(at, at + 2).map(marketEntry), cursor: next })
}

function marketEntry(market: SimulatedMarket): Record<string, unknown> {
  return {
    ticker: market.ticker,
    event_ticker: market.event,
    market_type: 'binary',
    status: market.status,
    result: market.result,
    open_time: new Date(market.openMs).toISOString(),
    close_time: new Date(market.closeMs).toISOString(),
    created_time: new Date(market.openMs - HOUR_MS).toISOString(),
    settlement_timer_seconds: 300,
    ...(market.status === 'active' ? {} : { settlement_ts: new Date(settledMs(market)).toISOString() }),
    ...(market.result === 'yes' ? { settlement_value_dollars: '1.0000' } : {}),
    last_price_dollars: '0.2800',
    volume_fp: '10155.43',
    price_level_structure: 'linear_cent',
    price_ranges: [{ start: '0.0000', end: '1.0000', step: '0.0100' }],
    strike_type: 'less',
    cap_strike: 75,
    yes_sub_title: '74° or below',
    no_sub_title: '74° or below',
    expiration_value: '',
    can_close_early: true,
    rules_primary: 'If the highest temperature recorded at Central Park (CLINYC) is less than 75°, then Yes.',
    rules_secondary: '',
  }
}

function candlesOf(ticker: string, query: URLSearchParams, form: 'live' | 'historical'): unknown[] {
  const market = MARKETS.find((candidate) => candidate.ticker === ticker)
  const isHere = market !== undefined && settledMs(market) < CUTOFF_MS === (form === 'historical')
  if (!isHere) return []
  const [startMs, endMs] = [Number(query.get('start_ts')) * 1000, Number(query.get('end_ts')) * 1000]
  const periodMs = Number(query.get('period_interval')) * 60_000
  const ends = tradedEnds(market).map((ms) => Math.ceil(ms / periodMs) * periodMs)
  const traded = [...new Set(ends)].filter((ms) => ms >= startMs && ms <= endMs)
  return traded.flatMap((ms, index) => {
    const quiet = { ...candleEntry(ms - 60_000, form), ...QUIET[form] }
    // Some candles follow a minute without a trade, which the exchange sends too.
    return index % 3 === 0 && ms - 60_000 >= startMs && periodMs === 60_000
      ? [quiet, candleEntry(ms, form)]
      : [candleEntry(ms, form)]
  })
}

function candleEntry(endMs: number, form: 'live' | 'historical'): Record<string, unknown> {
  const cents = 10 + ((endMs / 60_000) % 50)
  const price = (extra: number): string => `0.${String(cents + extra).padStart(2, '0')}00`
  const suffix = form === 'live' ? '_dollars' : ''
  const fp = form === 'live' ? '_fp' : ''
  const prices = {
    open: price(1),
    low: price(0),
    high: price(3),
    close: price(2),
    mean: price(1),
    previous: price(1),
  }
  return {
    end_period_ts: endMs / 1000,
    price: Object.fromEntries(Object.entries(prices).map(([name, text]) => [`${name}${suffix}`, text])),
    [`volume${fp}`]: '12.50',
    [`open_interest${fp}`]: '2020.47',
  }
}

const QUIET = {
  live: {
    price: {
      open_dollars: null,
      low_dollars: null,
      high_dollars: null,
      close_dollars: null,
      previous_dollars: '0.4000',
    },
    volume_fp: '0.00',
  },
  historical: {
    price: { open: null, low: null, high: null, close: null, previous: '0.4000' },
    volume: '0.00',
  },
} as const
