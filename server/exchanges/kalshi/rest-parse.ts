// JSON of the exchange's REST API (Kalshi trade-api v2) → catalogue rows and candles. Pure. Live and historical routes name the
// candles' fields differently; both forms are read. A response with another shape is an UpstreamError. Single entries that cannot
// be read are returned as errors beside the rows, unless they are the majority.

import type { StoredCandle } from '../../../shared/sql/candle-queries.ts'
import { STATIONS, type Station } from '../../../shared/stations.ts'
import type { MarketRecord, SeriesRecord } from '../../storage/catalogue-store.ts'
import { UpstreamError } from '../../upstream/upstream-error.ts'
import {
  readArray,
  readBoolean,
  readInstant,
  readNumber,
  readObject,
  readText,
  requireInstant,
  requireText,
} from './rest-fields.ts'
import type { JsonObject } from '../../../shared/parsed-json.ts'
import { FieldError, readPrice, readQuantity } from './fixed-point.ts'

export const KALSHI = 'kalshi'

/** Lengths of the exchange's candles, minutes. */
export type StoredInterval = StoredCandle['period_interval']

/** Rows, and a message for each entry that could not be read. */
export interface ExchangeRows<T> {
  readonly rows: readonly T[]
  readonly rejected: readonly string[]
}

export function joinedRows<T>(parts: readonly ExchangeRows<T>[]): ExchangeRows<T> {
  return { rows: parts.flatMap(({ rows }) => rows), rejected: parts.flatMap(({ rejected }) => rejected) }
}

/** One page of a list, and the cursor of the next one. */
export interface Page<T> extends ExchangeRows<T> {
  /** Null on the last page. */
  readonly cursor: string | null
}

/** The fields of an event that its markets need. */
export interface ExchangeEvent {
  readonly ticker: string
  readonly seriesTicker: string
  readonly title: string | null
}

/** The market a candle belongs to. */
export interface MarketName {
  readonly ticker: string
  readonly eventTicker: string
  readonly seriesTicker: string
}

/** The temperature series in a response. `active` means that the exchange lists them. */
export function parseSeries(body: JsonObject, nowMs: number): ExchangeRows<SeriesRecord> {
  return readPage(body, 'series', (entry) => readSeries(entry, nowMs))
}

export function parseEvents(body: JsonObject): Page<ExchangeEvent> {
  return readPage(body, 'events', (entry) => ({
    ticker: requireText(entry, 'event_ticker'),
    seriesTicker: requireText(entry, 'series_ticker'),
    title: readText(entry, 'title'),
  }))
}

/** A market of an event that is not among `events` takes the first word of its ticker as series. */
export function parseMarkets(
  body: JsonObject,
  nowMs: number,
  events: ReadonlyMap<string, ExchangeEvent>,
): Page<MarketRecord> {
  return readPage(body, 'markets', (entry) => readMarket(entry, nowMs, events))
}

/** Traded candles of one market, from a live or historical response. */
export function parseCandles(
  body: JsonObject,
  market: MarketName,
  interval: StoredInterval,
): ExchangeRows<StoredCandle> {
  return readPage(body, 'candlesticks', (entry) => readCandle(entry, market, interval))
}

/** Traded candles of several markets, from the batch route; markets that were not requested are refused. */
export function parseBatchCandles(
  body: JsonObject,
  markets: ReadonlyMap<string, MarketName>,
  interval: StoredInterval,
): ExchangeRows<StoredCandle> {
  const page = readPage(body, 'markets', (entry) => {
    const ticker = requireText(entry, 'market_ticker')
    const market = markets.get(ticker)
    if (market === undefined) throw new FieldError('market_ticker', ticker, 'a market asked for')
    return readMarketCandles(entry, market, interval)
  })
  return joinedRows([{ rows: [], rejected: page.rejected }, ...page.rows])
}

/** An unreadable entry of one market must not affect the others. */
function readMarketCandles(
  entry: JsonObject,
  market: MarketName,
  interval: StoredInterval,
): ExchangeRows<StoredCandle> {
  try {
    return parseCandles(entry, market, interval)
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    return { rows: [], rejected: [`${market.ticker}: ${error.message}`] }
  }
}

/** The cutoff, ms: markets settled, or trades made, before it are on the historical routes. @throws {UpstreamError} */
export function parseCutoff(body: JsonObject, name: 'market_settled_ts' | 'trades_created_ts'): number {
  try {
    return requireInstant(body, name)
  } catch (error) {
    throw malformed(error instanceof Error ? error.message : '', error)
  }
}

/** The entries of a list; `read` returns null for one that is of no interest. */
function readPage<T>(body: JsonObject, name: string, read: (entry: JsonObject) => T | null): Page<T> {
  const entries: (T | null)[] = []
  const rejected: string[] = []
  let cursor: string | null
  try {
    cursor = readText(body, 'cursor')
    for (const entry of readArray(name, body[name])) {
      try {
        entries.push(read(readObject(name, entry)))
      } catch (error) {
        if (!(error instanceof FieldError)) throw error
        rejected.push(error.message)
      }
    }
  } catch (error) {
    throw error instanceof FieldError ? malformed(error.message, error) : error
  }
  if (rejected.length > entries.length) {
    throw malformed(`${rejected.length} of ${rejected.length + entries.length} ${name}: ${rejected[0]}`)
  }
  return { rows: entries.filter((row) => row !== null), rejected, cursor }
}

function malformed(detail: string, cause?: unknown): UpstreamError {
  return new UpstreamError(KALSHI, 'malformed', detail, { cause })
}

const TEMPERATURE = /\btemp(?:erature)?s?\b/i
const LOW = /\b(?:low|lowest|minimum)\b/i
const SERIES_STATIONS: ReadonlyMap<string, Station> = new Map(
  STATIONS.flatMap((station) => [
    [station.highSeries, station],
    [station.lowSeries, station],
  ]),
)

/** Null for a series that is not about temperature: the category also has hurricanes and a retailer's prices. */
function readSeries(entry: JsonObject, nowMs: number): SeriesRecord | null {
  const ticker = requireText(entry, 'ticker')
  const title = readText(entry, 'title') ?? ticker
  const tags = readArray('tags', entry['tags'] ?? []).map(String)
  const station = SERIES_STATIONS.get(ticker)
  if (station === undefined && ![title, ...tags].some((text) => TEMPERATURE.test(text))) return null
  const frequency = readText(entry, 'frequency') ?? ''
  const isLow = station === undefined ? LOW.test(title) : station.lowSeries === ticker
  return {
    ticker,
    measure_type: frequency === 'hourly' ? 'hourly' : isLow ? 'low' : 'high',
    title,
    station_code: station?.code ?? null,
    category: readText(entry, 'category') ?? '',
    frequency,
    tags,
    active: true,
    settlement_sources: readArray('settlement_sources', entry['settlement_sources'] ?? []),
    contract_url: readText(entry, 'contract_url'),
    fee_type: readText(entry, 'fee_type'),
    fee_multiplier: readNumber(entry, 'fee_multiplier'),
    last_seen_at: nowMs,
  }
}

function readMarket(
  entry: JsonObject,
  nowMs: number,
  events: ReadonlyMap<string, ExchangeEvent>,
): MarketRecord {
  const eventTicker = requireText(entry, 'event_ticker')
  const event = events.get(eventTicker)
  const rules = readText(entry, 'rules_primary')
  const ranges = entry['price_ranges'] ?? null
  return {
    ticker: requireText(entry, 'ticker'),
    event_ticker: eventTicker,
    // A market does not name its series. Series tickers have no dash, so the first word of its event is the series.
    series_ticker: event?.seriesTicker ?? eventTicker.slice(0, `${eventTicker}-`.indexOf('-')),
    station_code: stationOf(rules),
    status: requireText(entry, 'status'),
    result: readText(entry, 'result') ?? '',
    title: readText(entry, 'title') ?? event?.title ?? null,
    open_time: readInstant(entry, 'open_time'),
    close_time: requireInstant(entry, 'close_time'),
    market_type: readText(entry, 'market_type'),
    yes_sub_title: readText(entry, 'yes_sub_title'),
    no_sub_title: readText(entry, 'no_sub_title'),
    strike_type: readText(entry, 'strike_type'),
    floor_strike: readNumber(entry, 'floor_strike'),
    cap_strike: readNumber(entry, 'cap_strike'),
    created_time: readInstant(entry, 'created_time'),
    updated_time: readInstant(entry, 'updated_time'),
    expected_expiration_time: readInstant(entry, 'expected_expiration_time'),
    latest_expiration_time: readInstant(entry, 'latest_expiration_time'),
    settlement_timer_seconds: readNumber(entry, 'settlement_timer_seconds'),
    settlement_value: readPrice(entry, 'settlement_value'),
    settlement_ts: readInstant(entry, 'settlement_ts'),
    expiration_value: readText(entry, 'expiration_value'),
    can_close_early: readBoolean(entry, 'can_close_early'),
    price_level_structure: readText(entry, 'price_level_structure'),
    price_ranges: ranges === null ? null : readArray('price_ranges', ranges),
    rules_primary: rules,
    rules_secondary: readText(entry, 'rules_secondary'),
    volume: readVolume(entry),
    last_seen_at: nowMs,
  }
}

/** Used only to check candles, so a market with an unreadable volume is still kept. */
function readVolume(entry: JsonObject): bigint | null {
  try {
    const volume = readQuantity(entry, 'volume')
    return volume === null ? null : BigInt(volume)
  } catch (error) {
    if (error instanceof FieldError) return null
    throw error
  }
}

/** The station whose climate report the rules name. Null means the station of the series. */
function stationOf(rules: string | null): string | null {
  const pil = rules === null ? null : /\bCLI[A-Z]{3}\b/.exec(rules)
  return pil === null ? null : (STATIONS.find(({ climatePil }) => climatePil === pil[0])?.code ?? null)
}

const PRICE_MAX = 10_000

/**
 * Null for a period without a trade. The exchange makes such candles for a dense grid, and for the last state before the range.
 * They repeat known values and are not stored.
 */
function readCandle(entry: JsonObject, market: MarketName, interval: StoredInterval): StoredCandle | null {
  const endSeconds = readNumber(entry, 'end_period_ts')
  if (endSeconds === null || !Number.isSafeInteger(endSeconds) || endSeconds % 60 !== 0) {
    throw new FieldError('end_period_ts', entry['end_period_ts'], 'whole minutes in Unix seconds')
  }
  const volume = readQuantity(entry, 'volume')
  if (volume === null) throw new FieldError('volume', null, 'a quantity')
  const price = readObject('price', entry['price'] ?? {})
  const prices = ['open', 'high', 'low', 'close'].map((name) => readPrice(price, name))
  const [open = null, high = null, low = null, close = null] = prices
  if (volume === 0) return null
  if (open === null || high === null || low === null || close === null) {
    throw new FieldError('price', price, 'four prices')
  }
  if (low > Math.min(open, close) || high < Math.max(open, close) || high > PRICE_MAX) {
    throw new FieldError('price', price, 'ordered prices of at most a dollar')
  }
  const openInterest = readQuantity(entry, 'open_interest')
  if (openInterest === null) throw new FieldError('open_interest', null, 'a quantity')
  return {
    market_ticker: market.ticker,
    event_ticker: market.eventTicker,
    series_ticker: market.seriesTicker,
    period_interval: interval,
    end_period_ts: endSeconds * 1000,
    open,
    high,
    low,
    close,
    volume: BigInt(volume),
    open_interest: BigInt(openInterest),
  }
}
