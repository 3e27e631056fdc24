// Creates the endpoints of the server, each with the parts of the background that it needs.

import { HEALTH_CHECK_TIMEOUT_MS } from '../../shared/limits.ts'
import type { ServeConfig } from './config.ts'
import type { DataVersions } from '../catalogue/catalogue-feed.ts'
import { freshVersions } from '../catalogue/fresh-versions.ts'
import { candlesEndpoint } from '../endpoints/candles.ts'
import { climateGapsEndpoint } from '../endpoints/climate-gaps.ts'
import { climateEndpoint } from '../endpoints/climate.ts'
import { coverageEndpoint, gapsEndpoint } from '../endpoints/coverage.ts'
import { documentationEndpoints } from '../endpoints/documentation.ts'
import { filesEndpoint } from '../endpoints/files.ts'
import { healthEndpoint, readyzEndpoint } from '../endpoints/health.ts'
import { livezEndpoint } from '../endpoints/livez.ts'
import { lobEndpoint } from '../endpoints/lob.ts'
import { lobAtEndpoint } from '../endpoints/lob-at.ts'
import { lobDatesEndpoint } from '../endpoints/lob-dates.ts'
import { lobEstimateEndpoint } from '../endpoints/lob-estimate.ts'
import { lobReceiptEndpoint } from '../endpoints/lob-receipt.ts'
import { marketEndpoint, marketListEndpoint } from '../endpoints/markets.ts'
import { metricsEndpoint } from '../endpoints/metrics.ts'
import { observationsEndpoint } from '../endpoints/observations.ts'
import { seriesEndpoint, seriesListEndpoint } from '../endpoints/series.ts'
import { healthMonitor } from '../health/health-monitor.ts'
import type { Endpoint } from '../http/endpoint.ts'
import { LobReceipts } from '../lob/lob-receipts.ts'
import { RecordAnswers } from '../records/record-answers.ts'
import { RecordValidators } from '../records/record-validators.ts'
import { tradesEndpoint } from '../endpoints/trades.ts'
import { versionsEndpoint } from '../endpoints/versions.ts'
import { siteEndpoints } from '../site/site-endpoints.ts'
import { readVersion } from '../http/version.ts'
import type { Background, ServerDependencies } from './background.ts'

const RECORD_ENDPOINTS = [
  candlesEndpoint,
  observationsEndpoint,
  climateEndpoint,
  climateGapsEndpoint,
  tradesEndpoint,
]
const CATALOGUE_ENDPOINTS = [seriesListEndpoint, seriesEndpoint, marketListEndpoint, marketEndpoint]

/** The bucket that has the same keys; null if the lake is no copy of a bucket. */
function bucketOf({ sync }: ServeConfig): string | null {
  return sync?.from.startsWith('s3:') === true ? sync.from.replace(/\/+$/, '') : null
}

/** The endpoints of the API, in the order in which the documentation lists them. */
export function createEndpoints(
  config: ServeConfig,
  dependencies: ServerDependencies,
  background: Background,
): Endpoint[] {
  const { lobPool, recordPool, catalogue, feed, lakeWatch, lakeBooks, lakeVersions, metrics } = background
  const { cachePolicy, answerCache } = background
  const { store, checkEmbeddedDb } = dependencies
  const hasRecords = dependencies.storeAddress !== undefined
  const isStoreOff = config.store === null && store === undefined
  const health = healthMonitor({
    embeddedDb: checkEmbeddedDb ?? recordPool.checkDatabase,
    hostedDb: isStoreOff ? null : (store?.ping ?? (async () => false)),
    sync: () => lakeWatch.status,
    tradeProof: store?.tradeProof,
    async samples() {
      const { sampleCount } = await lakeBooks.firstFigures(HEALTH_CHECK_TIMEOUT_MS)
      return { files: sampleCount, records: store?.hasSampleRecords?.() ?? false }
    },
  })
  const version = readVersion()
  const versions = (): DataVersions => feed?.versions ?? new Map<string, string>()
  const fresh =
    store &&
    freshVersions(
      () => store.catalogue.versions(new AbortController().signal),
      () => versions().size === 0,
    )
  const validators = new RecordValidators({ versions, fresh, cachePolicy, version })
  const choice = config.sync?.choice ?? null
  const receipts = new LobReceipts()
  const common = { choice, versions: lakeVersions }
  const answers = new RecordAnswers(recordPool, validators, answerCache)
  const service = { answers, validators, ...common }
  const lobService = { pool: lobPool, catalogue, cachePolicy, version, receipts, ...common }
  const endpoints = [
    lobEndpoint(lobService),
    lobReceiptEndpoint(lobService),
    lobAtEndpoint(lobService),
    lobEstimateEndpoint(lobService),
    lobDatesEndpoint(config.lake, choice),
    ...(hasRecords ? RECORD_ENDPOINTS.map((endpointOf) => endpointOf(service)) : []),
    coverageEndpoint({ service, catalogue }),
    gapsEndpoint({ service, catalogue }),
    ...(isStoreOff ? [] : CATALOGUE_ENDPOINTS.map((endpointOf) => endpointOf(catalogue))),
    versionsEndpoint(lakeVersions),
    filesEndpoint({ lake: config.lake, bucket: bucketOf(config), choice }),
    healthEndpoint(health),
    readyzEndpoint(() => store === undefined || catalogue.isLoaded),
    livezEndpoint,
  ]
  if (config.metrics === 'on') endpoints.push(metricsEndpoint(metrics.registry))
  const described = [...endpoints, ...documentationEndpoints(endpoints)]
  return [...described, ...siteEndpoints(described, { ...config, marketNames: store?.marketNames })]
}
