// The sample's records beside the order books: catalogue, candles, METAR observations and climate reports of the same three series
// and days. They are derived from the same weather and trades as the books (station-day.ts, sample-recording.ts). The first `npm
// start` loads them into the embedded store. Like the books they are generated: none of it was ever traded, observed or issued.

import { PRICE_UNITS_PER_DOLLAR } from '../../shared/lob-v1.ts'
import type { Observation } from '../../shared/observation.ts'
import {
  addDays,
  MS_PER_HOUR,
  MS_PER_MINUTE,
  utcDatesBetween,
  utcDateStartMs,
} from '../../shared/utc-date.ts'
import { decodeMetar } from '../ingest/metar/decode-metar.ts'
import type { ClimateEstimate, ClimateReportRow } from '../storage/climate-store.ts'
import type { MarketRecord, SeriesRecord } from '../storage/catalogue-store.ts'
import type { MarketName } from '../storage/market-name-store.ts'
import { candlesOf } from './sample-candles.ts'
import { SAMPLE_SEEN_AT_MS as SEEN_AT_MS, SAMPLE_TAG } from './sample-mark.ts'
import { sampleTrades } from './sample-recording.ts'
import type { SampleSeries, TemperatureMarket } from './sample-series.ts'
import { SAMPLE_FIRST_DATE, SAMPLE_LAST_DATE, SAMPLE_SERIES, sampleMarkets } from './sample-series.ts'
import { SeededRandom } from './seeded-random.ts'
import { type SampleStation, stationDay } from './station-day.ts'
import type { Bucket } from './temperature-events.ts'

const CLIMATE_DAYS = 14
/** Days before the sample's last date: a date without any report, and one with an estimate only. */
const DAYS_WITHOUT_REPORT = 9
const DAYS_WITH_ESTIMATE = 8
/** Days before the sample's last date: the date whose final report was corrected. */
const DAYS_WITH_CORRECTION = 3
/** Time after the climate day's end. */
const FINAL_DELAY_MS = 2 * MS_PER_HOUR

/** All records of a seed. */
export function sampleRecords(seed: number) {
  const kalshi = SAMPLE_SERIES.filter(({ source }) => source === 'kalshi')
  const perSeries = kalshi.map((series) => marketsAndCandles(series, seed))
  const stations = kalshi.map(({ station }) => station)
  return {
    series: kalshi.map(({ ticker, station }) => seriesRecord(ticker, station)),
    markets: perSeries.flatMap(({ markets }) => markets),
    candles: perSeries.flatMap(({ candles }) => candles),
    names: SAMPLE_SERIES.filter(({ source }) => source !== 'kalshi').flatMap((series) =>
      namesOf(series, seed),
    ),
    observations: stations.flatMap((station) => observationsOf(station, seed)),
    reports: stations.flatMap((station) => reportsOf(station, seed)),
    estimates: stations.map((station) => estimateOf(station, seed)),
  }
}

function marketsAndCandles(series: SampleSeries, seed: number) {
  const { markets } = sampleMarkets(series, seed)
  const trades = sampleTrades(series, markets, seed)
  return {
    markets: markets.map((market) => marketRecord(series, market)),
    candles: [...trades.values()].flatMap(candlesOf),
  }
}

/** The exchange's names of markets whose ids do not show them. */
function namesOf(series: SampleSeries, seed: number): MarketName[] {
  const { source, ticker, station } = series
  return sampleMarkets(series, seed).described.map(({ id, event, bucket, outcome }) => {
    const [, month = '', day] = /-on-(\w+)-(\d+)-/.exec(event) ?? []
    const date = `${month.slice(0, 1).toUpperCase()}${month.slice(1)} ${day}`
    const question = `Will the highest temperature in ${station.name} be ${bucket} on ${date}?`
    return { source, series: ticker, market_id: id, question, outcome }
  })
}

function seriesRecord(ticker: string, station: SampleStation): SeriesRecord {
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

/** A market is settled by the day's final report. */
function marketRecord(series: SampleSeries, market: TemperatureMarket): MarketRecord {
  const { id, event, bucket, openMs, closeMs } = market
  const settledMs = closeMs + FINAL_DELAY_MS
  const isSettled = settledMs <= SEEN_AT_MS
  const isWinner = bucket === event.winner
  return {
    ticker: id,
    event_ticker: id.slice(0, id.lastIndexOf('-')),
    series_ticker: series.ticker,
    station_code: null,
    status: isSettled ? 'finalized' : 'active',
    result: isSettled ? (isWinner ? 'yes' : 'no') : '',
    title: null,
    open_time: openMs,
    close_time: closeMs,
    market_type: 'binary',
    yes_sub_title: null,
    no_sub_title: null,
    ...strikeFields(bucket),
    created_time: openMs,
    updated_time: null,
    expected_expiration_time: null,
    latest_expiration_time: null,
    settlement_timer_seconds: null,
    settlement_value: isSettled ? (isWinner ? PRICE_UNITS_PER_DOLLAR : 0) : null,
    settlement_ts: isSettled ? settledMs : null,
    expiration_value: isSettled ? String(event.weather.highF) : null,
    can_close_early: true,
    price_level_structure: null,
    price_ranges: null,
    rules_primary: null,
    rules_secondary: null,
    volume: null,
    last_seen_at: SEEN_AT_MS,
  }
}

/** Tails are named by the first degree outside, brackets by their degrees. */
function strikeFields({
  lowF,
  highF,
}: Bucket): Pick<MarketRecord, 'strike_type' | 'floor_strike' | 'cap_strike'> {
  if (lowF === null) return { strike_type: 'less', floor_strike: null, cap_strike: (highF ?? 0) + 1 }
  if (highF === null) return { strike_type: 'greater', floor_strike: lowF - 1, cap_strike: null }
  return { strike_type: 'between', floor_strike: lowF, cap_strike: highF }
}

/** Hourly METARs at :51 and an occasional SPECI, written as reports and decoded like real ones. */
function observationsOf(station: SampleStation, seed: number): Observation[] {
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
  station: SampleStation,
  type: 'METAR' | 'SPECI',
  observedMs: number,
  random: SeededRandom,
  seed: number,
): Observation {
  const date = new Date(observedMs + station.standardOffsetHours * MS_PER_HOUR).toISOString().slice(0, 10)
  const temperatureF = stationDay(station, date, seed).temperatureF(observedMs)
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

/** Tenths of a degree Celsius in the form of a METAR's body. */
function wholeDegrees(tenths: number): string {
  return `${tenths < 0 ? 'M' : ''}${two(Math.abs(Math.round(tenths / 10)))}`
}

/** Tenths of a degree Celsius as half of a T group. */
function tenthsGroup(tenths: number): string {
  return `${tenths < 0 ? 1 : 0}${String(Math.abs(tenths)).padStart(3, '0')}`
}

function metarText(
  station: SampleStation,
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

/** Two weeks of daily reports like real ones: a preliminary before each final, a correction, a gap. */
function reportsOf(station: SampleStation, seed: number): ClimateReportRow[] {
  const dates = utcDatesBetween(addDays(SAMPLE_LAST_DATE, -CLIMATE_DAYS), SAMPLE_LAST_DATE)
  return dates.flatMap((date, index) => {
    const daysBack = dates.length - 1 - index
    if (daysBack === DAYS_WITHOUT_REPORT || daysBack === DAYS_WITH_ESTIMATE) return []
    const { endMs, highF, lowF, extremesUntil } = stationDay(station, date, seed)
    const report = (
      report_type: ClimateReportRow['report_type'],
      issuedMs: number,
      extremes: { readonly highF: number; readonly lowF: number },
    ): ClimateReportRow => ({
      station_code: station.code,
      observation_date: date,
      high_temp_f: extremes.highF,
      low_temp_f: extremes.lowF,
      report_type,
      source: 'nws',
      product_id: `${new Date(issuedMs).toISOString().replaceAll(/\D/g, '').slice(0, 12)}-K${station.wfo}-CDUS41-${station.climatePil}`,
      issued_at: issuedMs,
      is_correction: report_type === 'correction',
    })
    const isCorrected = daysBack === DAYS_WITH_CORRECTION
    const preliminaryMs = endMs - 7 * MS_PER_HOUR
    const reports = [
      // Issued at 17:00 with the extremes until 15:00, so the warmest hour may come later.
      report('preliminary', preliminaryMs, extremesUntil(preliminaryMs - 2 * MS_PER_HOUR) ?? { highF, lowF }),
      report('final', endMs + FINAL_DELAY_MS, { highF: isCorrected ? highF - 1 : highF, lowF }),
    ]
    if (isCorrected) reports.push(report('correction', endMs + 9 * MS_PER_HOUR, { highF, lowF }))
    return reports.filter(({ issued_at }) => issued_at <= SEEN_AT_MS)
  })
}

function estimateOf(station: SampleStation, seed: number): ClimateEstimate {
  const observation_date = addDays(SAMPLE_LAST_DATE, -DAYS_WITH_ESTIMATE)
  const { highF, lowF } = stationDay(station, observation_date, seed)
  return {
    station_code: station.code,
    observation_date,
    high_temp_f: highF,
    low_temp_f: lowF,
  }
}
