// The exchange's REST API (Kalshi trade-api v2), market data only, without credentials. It knows the routes, the paging, the limits
// of one request, and the cutoff between live and historical routes. The callers decide what to request and where the rows go.

import { UPSTREAM_BUDGET_WAIT_MS_MAX } from '../../../shared/limits.ts'
import type { StoredCandle } from '../../../shared/sql/candle-queries.ts'
import { MS_PER_MINUTE } from '../../../shared/utc-date.ts'
import type { MarketRecord, SeriesRecord } from '../../storage/catalogue-store.ts'
import { type Clock, SYSTEM_CLOCK } from '../../tasks/clock.ts'
import { RequestBudget, type RequestRate } from '../../upstream/request-budget.ts'
import { type ClientOptions, UpstreamHttp } from '../../upstream/upstream-http.ts'
import type { JsonObject } from '../../../shared/parsed-json.ts'
import {
  type ExchangeEvent,
  type ExchangeRows,
  KALSHI,
  type MarketName,
  type Page,
  parseBatchCandles,
  parseCandles,
  parseCutoff,
  parseEvents,
  parseMarkets,
  parseSeries,
  type StoredInterval,
} from './rest-parse.ts'

/** Pages of one list; a cursor that never ends is a fault of the upstream. */
const EXCHANGE_PAGES_MAX = 1_000
/** Entries of one page of markets, and of events; the exchange's own limits. */
const EXCHANGE_MARKETS_PER_PAGE = 1_000
const EXCHANGE_EVENTS_PER_PAGE = 200
/** Candles of one market in one response; a request for more is answered with an unexplained 400. */
export const EXCHANGE_CANDLES_MAX = 5_000
/** Candles, and markets, of one request for several markets. */
export const EXCHANGE_BATCH_CANDLES_MAX = 10_000
export const EXCHANGE_BATCH_MARKETS_MAX = 100
/** How long the cutoff between live and historical routes is cached. It moves about once a day. */
const EXCHANGE_CUTOFF_MS_MAX = 60 * 60 * 1000

/** Every candle length that is collected, minutes. */
const CANDLE_INTERVALS = [1, 60, 1440] as const satisfies readonly StoredInterval[]

/** Half of the lowest tier's limit; the limit without an account is not published. */
export const KALSHI_RATE: RequestRate = { burst: 10, intervalMs: 100 }

/** Ends of candles, both inclusive, milliseconds. At most EXCHANGE_CANDLES_MAX intervals. */
export interface CandleSpan {
  readonly interval: StoredInterval
  readonly fromMs: number
  readonly toMs: number
}

/** The markets of a series that close at `closeFromMs` (milliseconds) or later. */
export interface MarketQuery {
  readonly seriesTicker: string
  readonly closeFromMs: number
  readonly signal: AbortSignal | undefined
}

export class KalshiClient extends UpstreamHttp {
  readonly #budget: RequestBudget
  readonly #clock: Clock
  #cutoff: { readonly atMs: number; readonly cutoffMs: number } | undefined

  constructor(options: ClientOptions) {
    const budget = options.budget ?? new RequestBudget(KALSHI_RATE)
    super({ ...options, name: KALSHI, rate: KALSHI_RATE, budget })
    this.#budget = budget
    this.#clock = options.clock ?? SYSTEM_CLOCK
  }

  /** The temperature series of a category. Every method throws `UpstreamError`, or the signal's reason on abort. */
  async temperatureSeries(category: string, signal?: AbortSignal): Promise<ExchangeRows<SeriesRecord>> {
    return parseSeries(await this.#get('/series', { category }, signal), this.#clock.nowMs())
  }

  async events(query: MarketQuery): Promise<ExchangeRows<ExchangeEvent>> {
    const parameters = {
      limit: EXCHANGE_EVENTS_PER_PAGE,
      series_ticker: query.seriesTicker,
      min_close_ts: seconds(query.closeFromMs),
    }
    return await this.#pages('/events', parameters, query.signal, (body) => parseEvents(body))
  }

  /** Markets of every status and result on one of the routes. The historical one cannot be bounded in time. */
  async markets(
    route: 'live' | 'historical',
    query: MarketQuery,
    events: ReadonlyMap<string, ExchangeEvent>,
  ): Promise<ExchangeRows<MarketRecord>> {
    const isLive = route === 'live'
    const parameters = {
      limit: EXCHANGE_MARKETS_PER_PAGE,
      series_ticker: query.seriesTicker,
      min_close_ts: isLive ? seconds(query.closeFromMs) : null,
    }
    return await this.#pages(isLive ? '/markets' : '/historical/markets', parameters, query.signal, (body) =>
      parseMarkets(body, this.#clock.nowMs(), events),
    )
  }

  /**
   * Markets settled before this instant are only on the historical routes; the live routes return nothing for them. The cutoff
   * moves. After a request to a live route, ask again with `isNew` to find out what that route no longer had.
   */
  async historicalCutoffMs(signal?: AbortSignal, isNew = false): Promise<number> {
    const nowMs = this.#clock.nowMs()
    if (isNew || this.#cutoff === undefined || nowMs - this.#cutoff.atMs > EXCHANGE_CUTOFF_MS_MAX) {
      const cutoffMs = parseCutoff(await this.#get('/historical/cutoff', {}, signal), 'market_settled_ts')
      this.#cutoff = { atMs: nowMs, cutoffMs }
    }
    return this.#cutoff.cutoffMs
  }

  /** Traded candles of one market from the live or the historical route. */
  async candles(
    market: MarketName,
    route: 'live' | 'historical',
    span: CandleSpan,
    signal?: AbortSignal,
  ): Promise<ExchangeRows<StoredCandle>> {
    const ticker = encodeURIComponent(market.ticker)
    const path =
      route === 'live'
        ? `/series/${encodeURIComponent(market.seriesTicker)}/markets/${ticker}/candlesticks`
        : `/historical/markets/${ticker}/candlesticks`
    const body = await this.#get(path, spanParameters(span), signal)
    return inSpan(parseCandles(body, market, span.interval), span)
  }

  /** Traded candles of several markets from the live route, in one request. See `batchSize`. */
  async batchCandles(
    markets: readonly MarketName[],
    span: CandleSpan,
    signal?: AbortSignal,
  ): Promise<ExchangeRows<StoredCandle>> {
    // The exchange counts every market of a batch as a call; the request itself takes the last token.
    await this.#payFor(markets.length - 1, signal)
    const parameters = {
      market_tickers: markets.map(({ ticker }) => ticker).join(','),
      ...spanParameters(span),
    }
    const body = await this.#get('/markets/candlesticks', parameters, signal)
    const byTicker = new Map(markets.map((market) => [market.ticker, market]))
    return inSpan(parseBatchCandles(body, byTicker, span.interval), span)
  }

  /**
   * Every page of a list, until one has no cursor. The exchange ends a list with an empty page only if the page before it was full.
   * After any other page, an empty end means missing entries.
   */
  async #pages<T>(
    path: string,
    parameters: ListParameters,
    signal: AbortSignal | undefined,
    parse: (body: JsonObject) => Page<T>,
  ): Promise<ExchangeRows<T>> {
    const rows: T[] = []
    const rejected: string[] = []
    const cursors = new Set<string>()
    let cursor: string | null = null
    let wasFull = true
    for (let pageIndex = 0; pageIndex < EXCHANGE_PAGES_MAX; pageIndex += 1) {
      const page: Page<T> = parse(await this.#get(path, { ...parameters, cursor }, signal))
      rows.push(...page.rows)
      rejected.push(...page.rejected)
      const count = page.rows.length + page.rejected.length
      if (page.cursor === null) {
        if (count === 0 && !wasFull)
          rejected.push(`${path} ends with an empty page after one that was not full`)
        return { rows, rejected }
      }
      if (cursors.has(page.cursor)) {
        throw this.malformed(`${path} repeats its cursor`)
      }
      cursors.add(page.cursor)
      cursor = page.cursor
      wasFull = count >= parameters.limit
    }
    throw this.malformed(`${path} has more than ${EXCHANGE_PAGES_MAX} pages`)
  }

  async #payFor(callCount: number, signal: AbortSignal | undefined): Promise<void> {
    let waitMs = 0
    for (let call = 0; call < callCount; call += 1) {
      waitMs = this.#budget.reserve(this.#clock.nowMs(), UPSTREAM_BUDGET_WAIT_MS_MAX) ?? waitMs
    }
    if (waitMs > 0) await this.#clock.sleep(waitMs, signal)
  }

  async #get(path: string, parameters: Parameters, signal: AbortSignal | undefined): Promise<JsonObject> {
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== null) query.set(name, String(value))
    }
    return await this.fetchObject({
      path: query.size === 0 ? path : `${path}?${query.toString()}`,
      headers: { accept: 'application/json' },
      signal,
    })
  }
}

type Parameters = Readonly<Record<string, string | number | null>>
/** `limit`: entries of a full page. */
type ListParameters = Parameters & { readonly limit: number }

/** The number of markets in one batch request for a span. */
export function batchSize({ interval, fromMs, toMs }: CandleSpan): number {
  const perMarket = Math.floor((toMs - fromMs) / (interval * MS_PER_MINUTE)) + 1
  return Math.min(Math.floor(EXCHANGE_BATCH_CANDLES_MAX / perMarket), EXCHANGE_BATCH_MARKETS_MAX)
}

/**
 * The ends of finished candles of every length after `fromMs`, up to and including `toMs`, in spans within the limit of one request.
 * No end is in two of them.
 */
export function finishedSpans(fromMs: number, toMs: number): CandleSpan[] {
  const spans: CandleSpan[] = []
  for (const interval of CANDLE_INTERVALS) {
    // Minutes and hours end on the full minute and hour. The exchange's days end at an hour of its own, so daily candles are
    // requested after each hour.
    const gridMs = (interval === 1 ? 1 : 60) * MS_PER_MINUTE
    const lastMs = Math.floor(toMs / gridMs) * gridMs
    const pieceMs = (EXCHANGE_CANDLES_MAX - 1) * interval * MS_PER_MINUTE
    const firstMs = (Math.floor(fromMs / gridMs) + 1) * gridMs
    for (let start = firstMs; start <= lastMs; start += pieceMs + MS_PER_MINUTE)
      spans.push({ interval, fromMs: start, toMs: Math.min(start + pieceMs, lastMs) })
  }
  return spans
}

/** No `include_latest_before_start`: it would put an invented candle before the first one. */
function spanParameters({ interval, fromMs, toMs }: CandleSpan): Parameters {
  return { start_ts: seconds(fromMs), end_ts: seconds(toMs), period_interval: interval }
}

/** Drops candles outside the requested range: an invented first one, or an unfinished last one. */
function inSpan(
  { rows, rejected }: ExchangeRows<StoredCandle>,
  { fromMs, toMs }: CandleSpan,
): ExchangeRows<StoredCandle> {
  const isIn = ({ end_period_ts }: StoredCandle): boolean => end_period_ts >= fromMs && end_period_ts <= toMs
  return { rows: rows.filter(isIn), rejected }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000)
}
