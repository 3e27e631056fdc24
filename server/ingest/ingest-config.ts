// The configuration of the collectors: addresses, intervals, User-Agent. One table declares options and environment variables; the
// help text comes from it too.

import type { OptionDeclaration, ParsedOptions } from '../options/options.ts'
import { integerOption, urlOption } from '../options/options.ts'
import { KALSHI_URL_OPTION } from '../exchanges/kalshi/configuration.ts'
import { CONFIGURED_TIMEOUT_MS_MAX } from '../../shared/limits.ts'

// oxfmt-ignore
export const USER_AGENT_OPTION =
  { name: 'user-agent', placeholder: '<text>', description: 'User-Agent of requests; include a contact address', default: 'bookcast/0.1' } as const satisfies OptionDeclaration

// oxfmt-ignore
export const INGEST_OPTIONS = [
  USER_AGENT_OPTION,
  KALSHI_URL_OPTION,
  { name: 'exchange-category', placeholder: '<name>', description: 'category whose temperature series are collected', default: 'Climate and Weather' },
  { name: 'kalshi-requests-per-second', placeholder: '<n>', description: 'rate limit of requests to the exchange', default: '10' },
  { name: 'polymarket-data-url', placeholder: '<url>', description: 'past trades of Polymarket', default: 'https://data-api.polymarket.com' },
  { name: 'aviation-weather-url', placeholder: '<url>', description: 'live weather', default: 'https://aviationweather.gov' },
  { name: 'iem-url', placeholder: '<url>', description: 'archive of weather and climate reports', default: 'https://mesonet.agron.iastate.edu' },
  { name: 'ncei-url', placeholder: '<url>', description: 'second archive of weather', default: 'https://www.ncei.noaa.gov' },
  { name: 'nws-url', placeholder: '<url>', description: 'newest climate reports', default: 'https://api.weather.gov' },
  { name: 'acis-url', placeholder: '<url>', description: 'climate statistics', default: 'https://data.rcc-acis.org' },
  { name: 'catalogue-interval-ms', placeholder: '<ms>', description: 'polling interval for series and markets', default: '300000' },
  { name: 'candles-interval-ms', placeholder: '<ms>', description: 'polling interval for candles of open markets', default: '60000' },
  { name: 'aviation-weather-interval-ms', placeholder: '<ms>', description: 'polling interval for live weather', default: '5000' },
  { name: 'climate-interval-ms', placeholder: '<ms>', description: 'polling interval for the newest climate reports', default: '120000' },
  { name: 'archives-interval-ms', placeholder: '<ms>', description: 'polling interval for the archives', default: '3600000' },
] as const satisfies readonly OptionDeclaration[]

type OptionName = (typeof INGEST_OPTIONS)[number]['name']

export type IngestConfig = ReturnType<typeof readIngestConfig>

/** @throws {UsageError} that names the wrong option */
export function readIngestConfig(options: ParsedOptions) {
  const text = (name: OptionName): string => options.demand(name).text.trim()
  const url = (name: OptionName): string => urlOption(options.demand(name), ['http:', 'https:'])
  const integer = (name: OptionName, minimum: number, maximum: number): number =>
    integerOption(options.demand(name), minimum, maximum)
  const intervalMs = (name: OptionName): number => integer(name, 1_000, CONFIGURED_TIMEOUT_MS_MAX)
  return Object.freeze({
    userAgent: text('user-agent'),
    kalshiUrl: url('kalshi-url'),
    /** The exchange's category whose temperature series are collected. */
    category: text('exchange-category'),
    kalshiRequestsPerSecond: integer('kalshi-requests-per-second', 1, 1_000),
    polymarketDataUrl: url('polymarket-data-url'),
    aviationWeatherUrl: url('aviation-weather-url'),
    iemUrl: url('iem-url'),
    nceiUrl: url('ncei-url'),
    nwsUrl: url('nws-url'),
    acisUrl: url('acis-url'),
    catalogueIntervalMs: intervalMs('catalogue-interval-ms'),
    candlesIntervalMs: intervalMs('candles-interval-ms'),
    aviationWeatherIntervalMs: intervalMs('aviation-weather-interval-ms'),
    climateIntervalMs: intervalMs('climate-interval-ms'),
    archivesIntervalMs: intervalMs('archives-interval-ms'),
  })
}
