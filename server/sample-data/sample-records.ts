// The sample's records beside the order books: catalogue, candles, METAR observations and climate reports of the same
// three series and days, made from the same seed. They go into the embedded store at the first `npm start`; like the
// books they are generated, and none of it was ever traded, observed or issued.

import { seriesOfTicker } from '../../shared/series-name.ts'
import { PRICE_UNITS_PER_CENT } from '../../shared/lob-v1.ts'
import type { Observation } from '../../shared/observation.ts'
import type { StoredCandle } from '../../shared/sql/candle-queries.ts'
import { STATIONS, type Station } from '../../shared/stations.ts'
import { addDays, MS_PER_DAY, MS_PER_HOUR, utcDatesBetween, utcDateStartMs } from '../../shared/utc-date.ts'
import type { StationReport } from '../ingest/climate-reports/station-reports.ts'
import { decodeMetar } from '../ingest/metar/decode-metar.ts'
import type { ClimateEstimate } from '../storage/climate-store.ts'
import type { MarketRecord, SeriesRecord } from '../storage/catalogue-store.ts'
import type { SimulatedMarket } from './recorded-stream.ts'
import { SAMPLE_SEEN_AT_MS as SEEN_AT_MS, SAMPLE_TAG } from './sample-mark.ts'
import { SAMPLE_FIRST_DATE, SAMPLE_LAST_DATE, SAMPLE_SERIES, sampleMarkets } from './sample-series.ts'
import { SeededRandom } from './seeded-random.ts'

export interface SampleRecords {
  readonly series: readonly SeriesRecord[]
  readonly markets: readonly MarketRecord[]
  readonly candles: readonly StoredCandle[]
  readonly observations: readonly Observation[]
  readonly reports: readonly StationReport[]
  readonly estimates: readonly ClimateEstimate[]
}

const MS_PER_MINUTE = 60_000
const CLIMATE_DAYS = 14
/** Dates before the sample's last one without any report, and with an estimate only. */
const DAYS_WITHOUT_REPORT = 9
const DAYS_WITH_ESTIMATE = 8

/** All records of a seed. */
export function sampleRecords(seed: number): SampleRecords {
  const kalshi = SAMPLE_SERIES.filter(({ source }) => source === 'kalshi')
  const markets = kalshi.flatMap((series) => sampleMarkets(series, seed).markets)
  const stations = kalshi.map(({ ticker }) => stationOfSeries(ticker))
  return {
    series: kalshi.map(({ ticker }) => seriesRecord(ticker, stationOfSeries(ticker))),
    markets: markets.map(marketRecord),
    candles: markets.flatMap((market) => candlesOf(market, seed)),
    observations: stations.flatMap((station) => observationsOf(station, seed)),
    reports: stations.flatMap((station) => reportsOf(station, seed)),
    estimates: stations.map((station) => ({
      station_code: station.code,
      observation_date: addDays(SAMPLE_LAST_DATE, -DAYS_WITH_ESTIMATE),
      high_temp_f: dailyHighF(station, addDays(SAMPLE_LAST_DATE, -DAYS_WITH_ESTIMATE), seed),
      low_temp_f: dailyHighF(station, addDays(SAMPLE_LAST_DATE, -DAYS_WITH_ESTIMATE), seed) - 17,
      received_at: SEEN_AT_MS,
    })),
  }
}

function stationOfSeries(ticker: string): Station {
  const station = STATIONS.find(({ highSeries }) => highSeries === ticker)
  if (station === undefined) throw new Error(`no station settles ${ticker}`)
  return station
}

function seriesRecord(ticker: string, station: Station): SeriesRecord {
  return {
    ticker,
    measure_type: 'high',
    title: `Highest temperature in ${station.name}`,
    station_code: station.code,
    category: 'Climate and Weather',
    frequency: 'daily',
    tags: ['Daily temperature', SAMPLE_TAG],
    active: true,
    settlement_sources: [],
    contract_url: null,
    fee_type: 'quadratic',
    fee_multiplier: 1,
    last_seen_at: SEEN_AT_MS,
  }
}

function marketRecord(market: SimulatedMarket): MarketRecord {
  const { id, openMs, closeMs } = market
  const isClosed = closeMs <= SEEN_AT_MS
  const result = market.fairAt(closeMs) > 5000 ? 'yes' : 'no'
  return {
    ticker: id,
    event_ticker: id.slice(0, id.lastIndexOf('-')),
    series_ticker: seriesOfTicker(id),
    station_code: null,
    status: isClosed ? 'finalized' : 'active',
    result: isClosed ? result : '',
    title: null,
    open_time: openMs,
    close_time: closeMs,
    market_type: 'binary',
    yes_sub_title: null,
    no_sub_title: null,
    strike_type: null,
    floor_strike: null,
    cap_strike: null,
    created_time: openMs,
    updated_time: null,
    expected_expiration_time: null,
    latest_expiration_time: null,
    settlement_timer_seconds: null,
    settlement_value: null,
    settlement_ts: null,
    expiration_value: null,
    can_close_early: true,
    price_level_structure: null,
    price_ranges: null,
    rules_primary: null,
    rules_secondary: null,
    volume: null,
    last_seen_at: SEEN_AT_MS,
  }
}

/** Traded minutes of a market, and the hours and days they make. */
function candlesOf(market: SimulatedMarket, seed: number): StoredCandle[] {
  const random = new SeededRandom(seed, `${market.id}/trades`)
  const minutes: StoredCandle[] = []
  let openInterest = 0
  const endMs = Math.min(market.closeMs, SEEN_AT_MS)
  for (let endTs = market.openMs + MS_PER_MINUTE; endTs <= endMs; endTs += MS_PER_MINUTE) {
    if (random.below(25) !== 0) continue
    const cents = (): number => {
      const fair = Math.round(market.fairAt(endTs) / PRICE_UNITS_PER_CENT) + random.below(3) - 1
      return Math.min(Math.max(fair, 1), 99) * PRICE_UNITS_PER_CENT
    }
    const prices = [cents(), cents(), cents(), cents()]
    const volume = 100 * (1 + random.below(400))
    openInterest += Math.floor(volume / 200) * 100
    minutes.push({
      market_ticker: market.id,
      event_ticker: market.id.slice(0, market.id.lastIndexOf('-')),
      series_ticker: seriesOfTicker(market.id),
      period_interval: 1,
      end_period_ts: endTs,
      open: prices[0]!,
      high: Math.max(...prices),
      low: Math.min(...prices),
      close: prices[3]!,
      volume: BigInt(volume),
      open_interest: BigInt(openInterest),
    })
  }
  return [...minutes, ...rolledUp(minutes, 60), ...rolledUp(minutes, 1440)]
}

function rolledUp(minutes: readonly StoredCandle[], interval: 60 | 1440): StoredCandle[] {
  const lengthMs = interval * MS_PER_MINUTE
  const candles = new Map<number, StoredCandle>()
  for (const minute of minutes) {
    const endTs = Math.ceil(minute.end_period_ts / lengthMs) * lengthMs
    const before = candles.get(endTs)
    candles.set(endTs, {
      ...minute,
      period_interval: interval,
      end_period_ts: endTs,
      open: before?.open ?? minute.open,
      high: Math.max(before?.high ?? 0, minute.high),
      low: Math.min(before?.low ?? minute.low, minute.low),
      volume: (before?.volume ?? 0n) + minute.volume,
    })
  }
  return [...candles.values()]
}

function dailyHighF(station: Station, date: string, seed: number): number {
  const usual = SAMPLE_SERIES.find(({ ticker }) => ticker === station.highSeries)!.usualHighF
  return usual + new SeededRandom(seed, `${station.code}/${date}/high`).below(9) - 4
}

/** Hourly METARs at :51 and a SPECI now and then, written as reports and decoded like real ones. */
function observationsOf(station: Station, seed: number): Observation[] {
  const random = new SeededRandom(seed, `${station.code}/reports`)
  const observations: Observation[] = []
  const fromMs = utcDateStartMs(addDays(SAMPLE_FIRST_DATE, -1))!
  for (let hourMs = fromMs; hourMs < SEEN_AT_MS; hourMs += MS_PER_HOUR) {
    observations.push(observation(station, 'METAR', hourMs + 51 * MS_PER_MINUTE, random, seed))
    if (random.below(20) === 0) {
      observations.push(
        observation(station, 'SPECI', hourMs + (5 + random.below(40)) * MS_PER_MINUTE, random, seed),
      )
    }
  }
  return observations
}

function observation(
  station: Station,
  type: 'METAR' | 'SPECI',
  observedMs: number,
  random: SeededRandom,
  seed: number,
): Observation {
  const localMs = observedMs + station.standardOffsetHours * MS_PER_HOUR
  const date = new Date(localMs).toISOString().slice(0, 10)
  const hour = (localMs % MS_PER_DAY) / MS_PER_HOUR
  const highF = dailyHighF(station, date, seed)
  const temperatureF = highF - 9 + Math.round(9 * Math.sin(((hour - 10) / 24) * 2 * Math.PI))
  const raw = metarText(station, type, observedMs, temperatureF, random)
  return {
    station_code: station.code,
    observed_at: observedMs,
    observation_type: type,
    source: 'awc',
    raw_metar: raw,
    received_at: observedMs + 4 * MS_PER_MINUTE,
    ...decodeMetar(raw, observedMs).weather,
  }
}

function two(number: number): string {
  return String(number).padStart(2, '0')
}

/** Tenths of a degree Celsius as the body of a METAR has them. */
function wholeDegrees(tenths: number): string {
  return `${tenths < 0 ? 'M' : ''}${two(Math.abs(Math.round(tenths / 10)))}`
}

/** Tenths of a degree Celsius as half a T group. */
function tenthsGroup(tenths: number): string {
  return `${tenths < 0 ? 1 : 0}${String(Math.abs(tenths)).padStart(3, '0')}`
}

function metarText(
  station: Station,
  type: 'METAR' | 'SPECI',
  observedMs: number,
  temperatureF: number,
  random: SeededRandom,
): string {
  const instant = new Date(observedMs)
  const time = `${two(instant.getUTCDate())}${two(instant.getUTCHours())}${two(instant.getUTCMinutes())}Z`
  const tenths = Math.round(((temperatureF - 32) * 50) / 9)
  const dewTenths = tenths - 60 - random.below(60)
  const wind = `${two(18 + random.below(12))}0${two(3 + random.below(12))}KT`
  const sky = ['CLR', 'FEW045', 'SCT060', 'BKN080'][random.below(4)]
  const altimeter = 2985 + random.below(30)
  return `${type} ${station.icao} ${time} AUTO ${wind} 10SM ${sky} ${wholeDegrees(tenths)}/${wholeDegrees(dewTenths)} A${altimeter} RMK AO2 T${tenthsGroup(tenths)}${tenthsGroup(dewTenths)}`
}

/** Two weeks of daily reports with what real ones have: a preliminary before each final, a correction, a gap. */
function reportsOf(station: Station, seed: number): StationReport[] {
  const dates = utcDatesBetween(addDays(SAMPLE_LAST_DATE, -CLIMATE_DAYS), SAMPLE_LAST_DATE)
  return dates.flatMap((date, index) => {
    const daysBack = dates.length - 1 - index
    if (daysBack === DAYS_WITHOUT_REPORT || daysBack === DAYS_WITH_ESTIMATE) return []
    const highF = dailyHighF(station, date, seed)
    const dayEndMs = utcDateStartMs(date)! + MS_PER_DAY - station.standardOffsetHours * MS_PER_HOUR
    const report = (
      report_type: StationReport['report_type'],
      issuedMs: number,
      high_temp_f: number,
    ): StationReport => ({
      station_code: station.code,
      observation_date: date,
      high_temp_f,
      low_temp_f: highF - 18,
      report_type,
      source: 'nws',
      product_id: `${new Date(issuedMs).toISOString().replaceAll(/\D/g, '').slice(0, 12)}-K${station.wfo}-CDUS41-${station.climatePil}`,
      issued_at: issuedMs,
      is_correction: report_type === 'correction',
    })
    const reports = [
      report('preliminary', dayEndMs - 7 * MS_PER_HOUR, highF - 1),
      report('final', dayEndMs + 2 * MS_PER_HOUR, highF),
    ]
    if (daysBack === 3) reports.push(report('correction', dayEndMs + 9 * MS_PER_HOUR, highF + 1))
    return reports
  })
}
