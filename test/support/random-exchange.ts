// An exchange for tests with random market times: some markets are open for an hour, some for weeks, some close earlier or later
// than first announced. It answers as of a time that the test advances. Its historical routes take over markets settled long ago.
// It has candles of every market: minutes with a trade, summed to hours and days.

import type { SeededRandom } from '../../server/sample-data/seeded-random.ts'
import { type Answer, type AskedRequest, send } from './local-upstream.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Markets move to the historical routes this long after their settlement, at midnight. */
const LIVE_DAYS = 4
/** The exchange's days end at an hour of its own. */
const DAY_END_HOUR_MS = 4 * HOUR_MS
const PAGE = 3

interface Trade {
  /** End of the minute. */
  readonly endMs: number
  readonly cents: number
  /** 1/100 contract. */
  readonly volume: number
  /** The exchange reports some trades only hours later. */
  readonly toldMs: number
}

interface RandomMarket {
  readonly ticker: string
  readonly event: string
  readonly series: string
  readonly openMs: number
  /** The announced closes, each from an instant on; the last one is the real one. */
  readonly closes: readonly { readonly sinceMs: number; readonly closeMs: number }[]
  readonly settledMs: number
  readonly trades: readonly Trade[]
}

/** A stored candle as one text. */
export type CandleText = string

export interface RandomExchange {
  nowMs: number
  readonly series: readonly string[]
  readonly markets: readonly RandomMarket[]
  answer(request: AskedRequest, basePath: string): Answer | undefined
  /** The finished candles that end in (fromMs, toMs], of the markets listed now. */
  candles(fromMs: number, toMs: number): ReadonlySet<CandleText>
}

/** Markets that trade within [fromMs, toMs). Some of their trades are reported hours late. */
export function randomExchange(
  random: SeededRandom,
  fromMs: number,
  toMs: number,
  lateHours = 40,
): RandomExchange {
  const series = ['KXHIGHNY', 'KXHIGHCHI']
  const markets = series.flatMap((name) =>
    Array.from({ length: 5 + random.below(6) }, (_, index) =>
      randomEvent(random, name, index, fromMs, toMs, lateHours),
    ),
  )
  const all = markets.flat()
  const exchange: RandomExchange = {
    nowMs: toMs,
    series,
    markets: all,
    answer: (request, basePath) => answerOf(exchange, request, basePath),
    candles(from, to) {
      const found = new Set<string>()
      for (const market of all.filter((each) => isListed(each, exchange.nowMs))) {
        for (const interval of [1, 60, 1440]) {
          for (const candle of candlesOf(market, interval, exchange.nowMs)) {
            const isFinished = candle.endMs <= exchange.nowMs
            if (candle.endMs > from && candle.endMs <= to && isFinished) {
              found.add(textOf(market, interval, candle))
            }
          }
        }
      }
      return found
    },
  }
  return exchange
}

function randomEvent(
  random: SeededRandom,
  series: string,
  index: number,
  fromMs: number,
  toMs: number,
  lateHours: number,
): RandomMarket[] {
  const event = `${series}-E${index}`
  const openMs = minuteIn(random, fromMs - 3 * DAY_MS, toMs)
  const hours = random.pick([1, 13, 39, 39, 39, 120, 400])
  const plannedMs = openMs + hours * HOUR_MS + random.below(90) * MINUTE_MS
  return Array.from({ length: 1 + random.below(3) }, (_, strike) => {
    // Most close as announced; some close early, some are extended shortly before their close.
    const kind = random.below(5)
    const closeMs =
      kind === 0
        ? minuteIn(random, openMs + HOUR_MS / 2, plannedMs)
        : kind === 1
          ? plannedMs + random.below(60) * HOUR_MS
          : plannedMs
    const changedMs = Math.min(plannedMs, closeMs) - 10 * MINUTE_MS
    const trades = tradesOf(random, openMs, closeMs, lateHours)
    return {
      ticker: `${event}-T${70 + strike}`,
      event,
      series,
      openMs,
      closes: [
        { sinceMs: 0, closeMs: plannedMs },
        { sinceMs: changedMs, closeMs },
      ],
      settledMs: closeMs + (1 + random.below(30)) * HOUR_MS,
      trades,
    }
  })
}

function tradesOf(random: SeededRandom, openMs: number, closeMs: number, lateHours: number): Trade[] {
  const ends = new Set<number>()
  for (let count = random.below(14); count > 0; count -= 1)
    ends.add(minuteIn(random, openMs, closeMs) + MINUTE_MS)
  if (random.isWithin(0.5)) ends.add(closeMs)
  return [...ends]
    .toSorted((a, b) => a - b)
    .filter((endMs) => endMs <= closeMs)
    .map((endMs) => ({
      endMs,
      cents: 1 + random.below(98),
      volume: 1 + random.below(5_000),
      toldMs: endMs + (random.isWithin(0.5) ? random.below(lateHours) * HOUR_MS : 0),
    }))
}

function minuteIn(random: SeededRandom, fromMs: number, toMs: number): number {
  return fromMs + random.below(Math.max(Math.floor((toMs - fromMs) / MINUTE_MS), 1)) * MINUTE_MS
}

interface Candle {
  readonly endMs: number
  readonly open: number
  readonly high: number
  readonly low: number
  readonly close: number
  readonly volume: number
}

function candlesOf(market: RandomMarket, interval: number, nowMs: number): Candle[] {
  const periodMs = interval * MINUTE_MS
  const offsetMs = interval === 1440 ? DAY_END_HOUR_MS : 0
  const candles = new Map<number, Candle>()
  for (const { endMs, cents, volume } of market.trades.filter((trade) => trade.toldMs <= nowMs)) {
    const end = Math.ceil((endMs - offsetMs) / periodMs) * periodMs + offsetMs
    const known = candles.get(end)
    candles.set(end, {
      endMs: end,
      open: known?.open ?? cents,
      high: Math.max(known?.high ?? 0, cents),
      low: Math.min(known?.low ?? 100, cents),
      close: cents,
      volume: (known?.volume ?? 0) + volume,
    })
  }
  return [...candles.values()]
}

function textOf({ ticker }: RandomMarket, interval: number, candle: Candle): CandleText {
  const { endMs, open, high, low, close, volume } = candle
  const prices = [open, high, low, close].map((cents) => cents * 100).join(' ')
  return `${ticker} ${interval} ${new Date(endMs).toISOString()} ${prices} ${volume}`
}

/** The closes of stored candles, in the form of `candles`. */
export const STORED_CANDLES = `SELECT market_ticker || ' ' || period_interval || ' ' ||
  to_char(end_period_ts AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || ' ' ||
  open || ' ' || high || ' ' || low || ' ' || close || ' ' || volume AS text FROM candles`

function isListed({ openMs }: RandomMarket, nowMs: number): boolean {
  return openMs - HOUR_MS <= nowMs
}

function closeOf({ closes }: RandomMarket, nowMs: number): number {
  return closes.findLast(({ sinceMs }) => sinceMs <= nowMs)?.closeMs ?? 0
}

function isHistorical({ settledMs }: RandomMarket, nowMs: number): boolean {
  return settledMs < cutoffOf(nowMs)
}

function cutoffOf(nowMs: number): number {
  return Math.floor(nowMs / DAY_MS) * DAY_MS - LIVE_DAYS * DAY_MS
}

function answerOf(exchange: RandomExchange, request: AskedRequest, basePath: string): Answer | undefined {
  const { nowMs, markets } = exchange
  const url = new URL(request.url, 'http://local')
  const path = url.pathname.slice(basePath.length)
  const query = url.searchParams
  if (path === '/series') return json({ series: exchange.series.map(seriesEntry) })
  if (path === '/historical/cutoff') {
    return json({ market_settled_ts: new Date(cutoffOf(nowMs)).toISOString() })
  }
  const listed = markets.filter((market) => isListed(market, nowMs))
  if (path === '/events') return json({ events: eventEntries(listed, query, nowMs), cursor: '' })
  const isPast = path.startsWith('/historical/')
  const onRoute = listed.filter((market) => isHistorical(market, nowMs) === isPast)
  if (path === '/markets' || path === '/historical/markets') return marketPage(onRoute, query, nowMs)
  if (path === '/markets/candlesticks') {
    const tickers = (query.get('market_tickers') ?? '').split(',')
    const found = onRoute.filter(({ ticker }) => tickers.includes(ticker))
    return json({
      markets: found.map((market) => ({
        market_ticker: market.ticker,
        candlesticks: candleEntries(market, query, nowMs, false),
      })),
    })
  }
  const ticker = /\/markets\/([^/]+)\/candlesticks$/.exec(path)?.[1]
  if (ticker === undefined) return undefined
  const market = listed.find((each) => each.ticker === decodeURIComponent(ticker))
  if (market === undefined) return send(404, '{"error":"not found"}')
  // The live routes return nothing past the cutoff; the historical ones refuse markets that they do not have.
  if (isPast && !isHistorical(market, nowMs)) return send(404, '{"error":"not found"}')
  const isHere = isHistorical(market, nowMs) === isPast
  return json({ ticker, candlesticks: isHere ? candleEntries(market, query, nowMs, isPast) : [] })
}

function json(value: unknown): Answer {
  return send(200, JSON.stringify(value), { 'content-type': 'application/json' })
}

function seriesEntry(ticker: string): object {
  return {
    ticker,
    frequency: 'daily',
    title: `Highest temperature of ${ticker}`,
    tags: ['Daily temperature'],
  }
}

/** Events with a market that closes at or after the requested instant. */
function eventEntries(listed: readonly RandomMarket[], query: URLSearchParams, nowMs: number): object[] {
  const minMs = Number(query.get('min_close_ts') ?? 0) * 1000
  const ofSeries = listed
    .filter(({ series }) => series === query.get('series_ticker'))
    .filter((market) => closeOf(market, nowMs) >= minMs)
  return [...new Set(ofSeries.map(({ event }) => event))].map((event) => ({
    event_ticker: event,
    series_ticker: query.get('series_ticker'),
    title: event,
  }))
}

function marketPage(onRoute: readonly RandomMarket[], query: URLSearchParams, nowMs: number): Answer {
  const minMs = Number(query.get('min_close_ts') ?? 0) * 1000
  const maxMs = Number(query.get('max_close_ts') ?? 1e11) * 1000
  const all = onRoute
    .filter(({ series }) => series === query.get('series_ticker'))
    .filter((market) => closeOf(market, nowMs) >= minMs && closeOf(market, nowMs) <= maxMs)
  const at = Number(query.get('cursor') ?? 0)
  const next = at + PAGE < all.length ? String(at + PAGE) : ''
  return json({
    markets: all.slice(at, at + PAGE).map((market) => marketEntry(market, nowMs)),
    cursor: next,
  })
}

function marketEntry(market: RandomMarket, nowMs: number): object {
  const closeMs = closeOf(market, nowMs)
  const isSettled = market.settledMs <= nowMs
  const traded = market.trades.filter(({ toldMs }) => toldMs <= nowMs)
  return {
    ticker: market.ticker,
    event_ticker: market.event,
    status: isSettled ? 'finalized' : closeMs <= nowMs ? 'closed' : 'active',
    result: isSettled ? 'yes' : '',
    open_time: new Date(market.openMs).toISOString(),
    close_time: new Date(closeMs).toISOString(),
    ...(isSettled ? { settlement_ts: new Date(market.settledMs).toISOString() } : {}),
    volume_fp: hundredths(traded.reduce((sum, { volume }) => sum + volume, 0)),
  }
}

function hundredths(value: number): string {
  return (value / 100).toFixed(2)
}

function candleEntries(
  market: RandomMarket,
  query: URLSearchParams,
  nowMs: number,
  isPast: boolean,
): object[] {
  const [startMs, endMs] = [Number(query.get('start_ts')) * 1000, Number(query.get('end_ts')) * 1000]
  const suffix = isPast ? '' : '_dollars'
  const fp = isPast ? '' : '_fp'
  return candlesOf(market, Number(query.get('period_interval')), nowMs)
    .filter((candle) => candle.endMs >= startMs && candle.endMs <= endMs)
    .map((candle) => ({
      end_period_ts: candle.endMs / 1000,
      price: Object.fromEntries(
        (['open', 'high', 'low', 'close'] as const).map((name) => [
          `${name}${suffix}`,
          `${hundredths(candle[name])}00`,
        ]),
      ),
      [`volume${fp}`]: hundredths(candle.volume),
      [`open_interest${fp}`]: '1.00',
    }))
}
