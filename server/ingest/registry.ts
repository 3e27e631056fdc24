// Every source with its client: a new upstream is a folder and a line here. Clients of one host share its request budget.

import { STATIONS, type Station } from '../../shared/stations.ts'
import { AviationWeatherClient } from './aviation-weather/client.ts'
import { aviationWeatherSource } from './aviation-weather/source.ts'
import { AfosClient } from './climate-reports/afos-client.ts'
import { afosSource } from './climate-reports/afos-source.ts'
import { NwsClient } from './climate-reports/nws-client.ts'
import { nwsSource } from './climate-reports/nws-source.ts'
import { ClimateStatisticsClient } from './climate-statistics/client.ts'
import { climateStatisticsSource } from './climate-statistics/source.ts'
import { candleSource } from './exchange/candle-source.ts'
import { catalogueSource } from './exchange/catalogue-source.ts'
import { tradeSource } from './exchange/trade-source.ts'
import { KalshiClient } from '../exchanges/kalshi/rest-client.ts'
import { KalshiTradeArchive } from '../exchanges/kalshi/trade-archive.ts'
import { PolymarketTradeArchive } from '../exchanges/polymarket/trade-archive.ts'
import { IEM_RATE, IemClient } from './iem/client.ts'
import { iemSource } from './iem/source.ts'
import type { IngestConfig } from './ingest-config.ts'
import { NceiClient } from './ncei/client.ts'
import { nceiSource } from './ncei/source.ts'
import { RequestBudget } from '../upstream/request-budget.ts'
import { type IngestSource, isTradesSource, SOURCE_NAMES, type SourceName } from './source.ts'
import type { UpstreamOptions } from '../upstream/upstream-http.ts'

export interface RegistryOptions {
  /** Default: every source. */
  readonly names?: readonly SourceName[]
  readonly stations?: readonly Station[]
  /** The lake for past trades. Without it, their sources are left out. */
  readonly lake?: string | undefined
  /** For tests: timeouts, clock and jitter of every client. */
  readonly http?: Partial<Pick<UpstreamOptions, 'clock' | 'random' | 'timeoutMs' | 'attemptsMax'>>
}

/** The selected sources, in the order of SOURCE_NAMES. The caller closes them. */
export function createSources(config: IngestConfig, options: RegistryOptions = {}): IngestSource[] {
  const names = options.names ?? SOURCE_NAMES
  const stations = options.stations ?? STATIONS
  const http = { ...options.http, userAgent: config.userAgent }
  const iemBudget = new RequestBudget(IEM_RATE)
  const archives = { stations, intervalMs: config.archivesIntervalMs }
  const perSecond = config.kalshiRequestsPerSecond
  const kalshiBudget = new RequestBudget({ burst: perSecond, intervalMs: 1000 / perSecond })
  const kalshiOptions = { ...http, baseUrl: config.kalshiUrl, budget: kalshiBudget }
  const kalshi = (): KalshiClient => new KalshiClient(kalshiOptions)
  const make: Readonly<Record<SourceName, () => IngestSource>> = {
    'exchange-catalogue': () =>
      catalogueSource({
        client: kalshi(),
        category: config.category,
        intervalMs: config.catalogueIntervalMs,
      }),
    'exchange-candles': () => candleSource({ client: kalshi(), intervalMs: config.candlesIntervalMs }),
    'aviation-weather': () =>
      aviationWeatherSource({
        client: new AviationWeatherClient({ ...http, baseUrl: config.aviationWeatherUrl }),
        stations,
        intervalMs: config.aviationWeatherIntervalMs,
      }),
    iem: () =>
      iemSource({
        client: new IemClient({ ...http, baseUrl: config.iemUrl, budget: iemBudget }),
        ...archives,
      }),
    ncei: () => nceiSource({ client: new NceiClient({ ...http, baseUrl: config.nceiUrl }), ...archives }),
    'climate-nws': () =>
      nwsSource({
        client: new NwsClient({ ...http, baseUrl: config.nwsUrl }),
        stations,
        intervalMs: config.climateIntervalMs,
      }),
    'climate-afos': () =>
      afosSource({
        client: new AfosClient({ ...http, baseUrl: config.iemUrl, budget: iemBudget }),
        ...archives,
      }),
    'climate-statistics': () =>
      climateStatisticsSource({
        client: new ClimateStatisticsClient({ ...http, baseUrl: config.acisUrl }),
        ...archives,
      }),
    'kalshi-trades': () =>
      tradeSource({ source: 'kalshi', archive: new KalshiTradeArchive(kalshiOptions), lake: options.lake! }),
    'polymarket-trades': () =>
      tradeSource({
        source: 'polymarket',
        archive: new PolymarketTradeArchive({ ...http, baseUrl: config.polymarketDataUrl }),
        lake: options.lake!,
      }),
  }
  const isReady = (name: SourceName): boolean => options.lake !== undefined || !isTradesSource(name)
  return SOURCE_NAMES.filter((name) => names.includes(name) && isReady(name)).map((name) => make[name]())
}
