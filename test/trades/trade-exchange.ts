// The REST APIs of exchanges for past trades, as the exchanges give them: Kalshi's two routes with a cutoff that moves, and
// Polymarket's v2. Pages are small, so that every walk has several. A test may trouble them.

import type { TestContext } from 'node:test'
import { parseMarkets, parseSeries } from '../../server/exchanges/kalshi/rest-parse.ts'
import { KalshiTradeArchive } from '../../server/exchanges/kalshi/trade-archive.ts'
import { PolymarketTradeArchive } from '../../server/exchanges/polymarket/trade-archive.ts'
import { TradeArchive } from '../../server/exchanges/trade-archive.ts'
import { RequestBudget } from '../../server/upstream/request-budget.ts'
import { foldRawDates } from '../../server/fold/fold-raw-dates.ts'
import { tradeSource } from '../../server/ingest/exchange/trade-source.ts'
import type { TradesSource } from '../../server/ingest/exchange/trades-sources.ts'
import { backfillSource, type IngestEvent, type RunOutcome } from '../../server/ingest/run-source.ts'
import { completeWindow, type TimeWindow } from '../../server/storage/cursor-store.ts'
import type { Postgres } from '../../server/storage/postgres.ts'
import { writeMarkets, writeSeries } from '../../server/storage/catalogue-store.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import { seriesOfTicker } from '../../shared/series-name.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { runImport } from '../support/import-harness.ts'
import { type Answer, type AskedRequest, send, startRoutedUpstream } from '../support/local-upstream.ts'
import { DATE, randomOf, rowOf } from './random-trades.ts'
import type { TrueTrade } from './random-trades.ts'

export const DAY: TimeWindow = { fromMs: Date.parse(DATE), toMs: Date.parse(DATE) + MS_PER_DAY }
const NOW_MS = DAY.toMs + 10 * MS_PER_DAY
const MARKETS = {
  kalshi: ['KXHIGHNY-26JUL01-B80.5', 'KXHIGHNY-26JUL01-T82', 'KXRAIN-26JUL01-T1'],
  polymarket: ['0xaa:11', '0xaa:12', '0xbb:21'],
} as const

/** The address of an archive that sends no request. */
export const NEVER = 'http://127.0.0.1:1'

export interface TradeExchange {
  readonly baseUrl: string
  readonly asked: readonly AskedRequest[]
  trades: readonly TrueTrade[]
  pageRows: number
  /** Trades before it are on the historical route, and not on the live one. */
  cutoffMs: number
  /** Whether the historical route is still empty and the live one has everything. */
  isHistoryEmpty: boolean
  /** Called before every response. */
  fault: (request: AskedRequest) => Answer | undefined
}

export async function startTradeExchange(t: TestContext): Promise<TradeExchange> {
  const state: Omit<TradeExchange, 'baseUrl' | 'asked'> = {
    trades: [],
    pageRows: 4,
    cutoffMs: DAY.toMs,
    isHistoryEmpty: false,
    fault: () => undefined,
  }
  const queries = new Map<string, URLSearchParams>()
  const upstream = await startRoutedUpstream(
    t,
    (request) => state.fault(request) ?? answerOf(state, request, queries) ?? send(404, request.url),
  )
  return Object.assign(state, upstream)
}

function answerOf(
  state: Omit<TradeExchange, 'baseUrl' | 'asked'>,
  { url }: AskedRequest,
  queries: Map<string, URLSearchParams>,
): Answer | undefined {
  const { pathname: path, searchParams: query } = new URL(url, 'http://local')
  const at = Number(query.get('cursor')?.split('-')[0] ?? 0)
  const page = (rows: readonly TrueTrade[]): readonly TrueTrade[] =>
    rows.toSorted((a, b) => (a.us < b.us ? 1 : a.us > b.us ? -1 : 0)).slice(at, at + state.pageRows)
  if (path === '/kalshi/historical/cutoff')
    return json({ trades_created_ts: new Date(state.cutoffMs).toISOString(), market_settled_ts: new Date(0) })
  const isLive = path === '/kalshi/markets/trades'
  if (isLive || path === '/kalshi/historical/trades') {
    const [from, to] = ['min_ts', 'max_ts'].map((name) => BigInt(query.get(name) ?? 0) * 1_000_000n)
    const cutoffUs = BigInt(state.isHistoryEmpty ? 0 : state.cutoffMs) * 1000n
    const rows = state.trades.filter(
      ({ market, us }) =>
        market === query.get('ticker') && us >= from! && us <= to! && us >= cutoffUs === isLive,
    )
    const cursor = at + state.pageRows < rows.length ? `${at + state.pageRows}-${query.get('ticker')}` : ''
    return json({ trades: page(rows).map((trade) => rowOf('kalshi', trade)), cursor })
  }
  if (path !== '/polymarket/v2/trades') return undefined
  if (query.has('offset')) return send(400, '{"error":"offset"}')
  const first = queries.get(query.get('cursor')?.split('-')[1] ?? '') ?? query
  const conditions = first.get('condition')?.split(',') ?? []
  if (conditions.length === 0 || conditions.length > 20) return send(400, '{"error":"condition"}')
  const id = conditions.join('+')
  queries.set(id, first)
  const rows = state.trades.filter(({ market }) => conditions.includes(market.split(':')[0]!))
  const hasMore = at + state.pageRows < rows.length
  const pagination = {
    limit: state.pageRows,
    has_more: hasMore,
    next_cursor: hasMore ? `${at + state.pageRows}-${id}` : null,
  }
  return json({ data: page(rows).map((trade) => rowOf('polymarket', trade)), pagination })
}

function json(value: unknown): Answer {
  return send(200, JSON.stringify(value), { 'content-type': 'application/json' })
}

/** What a troubled exchange does once: it is whole again afterwards. Returns its name. */
export function trouble(exchange: TradeExchange, random: () => number): string {
  const at = 1 + Math.floor(random() * 12)
  let [count, left] = [0, 1 + Math.floor(random() * 3)]
  const once = (isMeant: (request: AskedRequest) => boolean, answer: (request: AskedRequest) => Answer) => {
    exchange.fault = (request) => {
      count += 1
      if (count < at || left === 0 || !isMeant(request)) return undefined
      left -= 1
      return answer(request)
    }
  }
  const hasCursor = ({ url }: AskedRequest): boolean => url.includes('cursor=')
  const troubles: Readonly<Record<string, () => void>> = {
    none: () => undefined,
    'expired cursors': () => once(hasCursor, () => send(400, '{"error":"cursor expired"}')),
    'a looping cursor': () => {
      left = Infinity
      once(hasCursor, ({ url }) => {
        const cursor = new URL(url, 'http://local').searchParams.get('cursor')
        const rows = { trades: [], cursor, data: [], pagination: { has_more: true, next_cursor: cursor } }
        return json(rows)
      })
    },
    'a server error': () => {
      left = Infinity
      once(
        () => true,
        () => send(500, 'busy'),
      )
    },
    'what is no list': () =>
      once(
        () => true,
        () => json({ trades: 1, data: 2 }),
      ),
    'a moving cutoff': () => {
      exchange.cutoffMs = DAY.fromMs + Math.floor(random() * 12) * 3_600_000
      const next = exchange.cutoffMs + Math.floor(random() * 13) * 3_600_000
      exchange.fault = () => {
        if (++count === at) exchange.cutoffMs = next
        return undefined
      }
    },
    'an empty history': () => {
      exchange.cutoffMs = DAY.fromMs + Math.floor(random() * 25) * 3_600_000
      exchange.isHistoryEmpty = true
    },
  }
  const names = Object.keys(troubles)
  const name = names[Math.floor(random() * names.length)]!
  heal(exchange)
  troubles[name]!()
  return name
}

export function heal(exchange: TradeExchange): void {
  Object.assign(exchange, { fault: () => undefined, isHistoryEmpty: false, cutoffMs: DAY.toMs })
}

/** A back-fill of the day, or of a longer span, which an abort may end. */
export async function backfillOnce(
  exchange: TradeExchange | TradeArchive,
  lake: string,
  source: TradesSource,
  postgres: Postgres,
  {
    signal = new AbortController().signal,
    onEvent,
    span = DAY,
  }: { signal?: AbortSignal; onEvent?: (event: IngestEvent) => void; span?: TimeWindow } = {},
): Promise<RunOutcome> {
  const clock = { nowMs: () => NOW_MS, sleep: async () => {} }
  const http = {
    userAgent: 'test',
    clock,
    random: () => 0,
    budget: new RequestBudget({ burst: 1e6, intervalMs: 1 }),
  }
  const archive =
    exchange instanceof TradeArchive
      ? exchange
      : source === 'kalshi'
        ? new KalshiTradeArchive({ ...http, baseUrl: `${exchange.baseUrl}/kalshi` })
        : new PolymarketTradeArchive({ ...http, baseUrl: `${exchange.baseUrl}/polymarket` })
  const trades = tradeSource({ source, archive, lake, folding: foldRawDates })
  try {
    return await backfillSource(trades, span, { postgres, clock, signal, onEvent })
  } finally {
    await trades.close()
  }
}

/** Back-fills the day: troubled and killed runs, and then healthy ones until nothing is missing. */
export async function backfill(
  exchange: TradeExchange,
  lake: string,
  source: TradesSource,
  postgres: Postgres,
  random: () => number = randomOf(1),
): Promise<void> {
  await postgres.run({
    text: 'DELETE FROM ingest_cursors WHERE source = $1::text',
    parameters: [`${source}-trades`],
  })
  trouble(exchange, random)
  if (random() < 0.5) {
    const killer = new AbortController()
    const { fault } = exchange
    let left = 1 + Math.floor(random() * 15)
    exchange.fault = (request) => {
      if (--left === 0) killer.abort(new Error('killed'))
      return fault(request)
    }
    await backfillOnce(exchange, lake, source, postgres, { signal: killer.signal }).catch(
      (error: unknown) => {
        if (!killer.signal.aborted) throw error
      },
    )
  } else await backfillOnce(exchange, lake, source, postgres)
  heal(exchange)
  await backfillOnce(exchange, lake, source, postgres)
}

/** What says which markets there are: Kalshi's catalogue in the store, and Polymarket's books in the lake. */
export async function seedMarkets(lake: string, source: LobSource, postgres: Postgres): Promise<void> {
  if (source === 'polymarket') {
    await runImport(lake, source, { lines: bookLines(DAY.fromMs) })
    return
  }
  await postgres.transaction(async (transaction) => {
    const tickers = MARKETS.kalshi
    const series = [...new Set(tickers.map(seriesOfTicker))]
    const listed = series.map((ticker) => ({ ticker, title: 'Highest temperature', frequency: 'daily' }))
    await writeSeries(transaction, parseSeries({ series: listed }, NOW_MS).rows)
    const markets = tickers.map((ticker) => ({
      ticker,
      event_ticker: ticker.slice(0, ticker.lastIndexOf('-')),
      status: 'finalized',
      open_time: new Date(DAY.fromMs - MS_PER_DAY),
      close_time: new Date(DAY.toMs + 1000),
    }))
    const body = JSON.parse(JSON.stringify({ markets })) as { readonly markets: unknown[] }
    await writeMarkets(transaction, parseMarkets(body, NOW_MS, new Map()).rows)
    for (const scope of series)
      await completeWindow(
        transaction,
        { source: 'exchange-catalogue', scope },
        { fromMs: DAY.fromMs - MS_PER_DAY, toMs: NOW_MS },
      )
  })
}

/** A recording of one book of each Polymarket token, a second after `ms`. */
export function bookLines(ms: number): string[] {
  return MARKETS.polymarket.map((id, index) => {
    const [market, asset_id] = id.split(':')
    const recvMs = ms + 1000 + index
    const book = { event_type: 'book', market, asset_id, timestamp: String(recvMs) }
    return JSON.stringify({
      recv_ts: recvMs,
      msg: { ...book, bids: [{ price: '0.4', size: '5' }], asks: [] },
    })
  })
}
