// Puts the serving process together, and takes it apart in the reverse order: HTTP in front, the endpoints behind it,
// the order-book threads at the back.

import type { Logger } from 'pino'
import { HEALTH_CHECK_TIMEOUT_MS, WORKER_CANCEL_TIMEOUT_MS } from '../shared/limits.ts'
import type { ServeConfig } from './config.ts'
import type { StoreAddress } from '../shared/sql/store-address.ts'
import { AnswerCache } from './answers/answer-cache.ts'
import { Catalogue } from './catalogue/catalogue.ts'
import { CatalogueFeed, type CatalogueSource, type DataVersions } from './catalogue/catalogue-feed.ts'
import { FreshVersions } from './catalogue/fresh-versions.ts'
import type { CollectionMetrics } from './collect/collection.ts'
import { candlesEndpoint } from './endpoints/candles.ts'
import { climateGapsEndpoint } from './endpoints/climate-gaps.ts'
import { climateEndpoint } from './endpoints/climate.ts'
import { documentationEndpoints } from './endpoints/documentation.ts'
import { healthEndpoint, readyzEndpoint } from './endpoints/health.ts'
import { livezEndpoint } from './endpoints/livez.ts'
import { lobEndpoint } from './endpoints/lob.ts'
import { marketEndpoint, marketListEndpoint } from './endpoints/markets.ts'
import { metricsEndpoint } from './endpoints/metrics.ts'
import { observationsEndpoint } from './endpoints/observations.ts'
import { seriesEndpoint, seriesListEndpoint } from './endpoints/series.ts'
import { ANSWER_CACHE_MB_DEFAULT } from './fairness-options.ts'
import { embeddedDbCheck } from './health/embedded-db-check.ts'
import { type DatabaseCheck, HealthMonitor } from './health/health-monitor.ts'
import { LakeBooks } from './health/lake-books.ts'
import type { StorageFigures } from './health/storage-watch.ts'
import { withinTime } from '../shared/within-time.ts'
import { Admission } from './http/admission.ts'
import { CachePolicy } from './http/cache-policy.ts'
import { CorsPolicy } from './http/cors.ts'
import type { Endpoint } from './http/endpoint.ts'
import { type LifecycleOptions, RequestLifecycle } from './http/request-lifecycle.ts'
import type { HttpServer } from './http/exchange.ts'
import { startHttpServer } from './http/http-server.ts'
import { BlockCache } from './lob/block-cache.ts'
import { LobAnswers } from './lob/lob-answers.ts'
import { LobPool } from './lob/lob-pool.ts'
import { startMetricsServer } from './metrics/metrics-server.ts'
import type { NewestRow } from './metrics/newest-rows.ts'
import { type IngestAge, ServiceMetrics } from './metrics/service-metrics.ts'
import { RecordAnswers } from './records/record-answers.ts'
import { RecordPool } from './records/record-pool.ts'
import { RecordValidators } from './records/record-validators.ts'
import { siteEndpoints } from './site/site-endpoints.ts'
import { createLakeWatch, type LakeWatch } from './sync/lake-watch.ts'
import { readVersion } from './version.ts'
import { DEFAULT_SHARES } from './workers/client-shares.ts'

export interface RunningServer {
  readonly host: string
  readonly port: number
  /** Where metrics have a port of their own. */
  readonly metricsPort: number | null
  readonly lobPool: LobPool
  /**
   * Answers new requests with 503, lets running ones finish within the configured time, cuts the others, ends the
   * threads. Every call returns the same promise.
   */
  close(): Promise<void>
  /** After `close`: whether some thread could not be ended, because a file does not answer it. */
  readonly hasStuckThreads: () => boolean
}

/** What the server asks of the relational store. */
export interface StoreServices {
  readonly catalogue: CatalogueSource
  readonly ping: DatabaseCheck
  /** How long ago each source of the ingest last delivered. */
  readonly ingestAges: () => Promise<readonly IngestAge[]>
  /** How new the newest rows are. */
  readonly newestRows?: () => Promise<readonly NewestRow[]>
  /** Whether it holds the sample records, as far as is known. */
  readonly hasSampleRecords?: () => boolean
}

export interface ServerDependencies {
  readonly logger: Logger
  /** Without one there is no catalogue: only the order books of the lake are served. */
  readonly store?: StoreServices
  /** Where record threads reach the relational store; without it candles, observations and climate are not served. */
  readonly storeAddress?: StoreAddress
  /** Asks the embedded analytical database a query, instead of the record threads. */
  readonly checkEmbeddedDb?: DatabaseCheck
  /** What collecting in this process has done so far; nothing before it began. */
  readonly collection?: () => CollectionMetrics | undefined
  /** How much room there is where the process writes. */
  readonly storage?: () => StorageFigures
  /** Other workers than the real ones, for tests. */
  readonly lobWorkerUrl?: URL
  readonly recordWorkerUrl?: URL
  /** Threads of each pool before their first task; all of them unless a test is to start sooner. */
  readonly threadsAtStart?: number
}

const BYTES_PER_MB = 1024 * 1024
const RECORD_WORKER_URL = new URL('../workers/records/task.js', import.meta.url)
const LOB_WORKER_URL = new URL('../workers/lob/task.js', import.meta.url)

/** Resolves to whether the promise settled in time. */
async function settlesWithin(promise: Promise<unknown>, timeoutMs: number): Promise<boolean> {
  const settled = promise.then(() => true)
  return (await withinTime(settled, timeoutMs)) ?? false
}

/** The endpoints' common gate and what counts them. */
function lifecycleOptions(config: ServeConfig, logger: Logger, metrics: ServiceMetrics): LifecycleOptions {
  const needsAdmission = config.apiKeys.length > 0 || config.rateLimit !== null
  return {
    logger,
    trustedProxies: config.trustedProxies,
    admission: needsAdmission ? new Admission(config) : undefined,
    cors: config.corsOrigins.length > 0 ? new CorsPolicy(config.corsOrigins) : undefined,
    observe: config.metrics === 'off' ? undefined : metrics.requests.observe,
  }
}

/** What runs beside the requests and has to be ended. */
interface Background {
  readonly lobPool: LobPool
  /** Without a store there are no records. */
  readonly recordPool: RecordPool | undefined
  readonly feed: CatalogueFeed | undefined
  readonly lakeWatch: LakeWatch
  readonly lakeBooks: LakeBooks
  readonly metrics: ServiceMetrics
  readonly answerCache: AnswerCache
  /** Undefined where no order-book answer is kept on disk. */
  readonly blockCache: BlockCache | undefined
}

/** Resolves to whether every thread has ended. */
async function endBackground(background: Background): Promise<boolean> {
  const { lobPool, recordPool, feed, lakeWatch, lakeBooks, metrics } = background
  const pools = Promise.all([lobPool.close(), recordPool?.close() ?? true])
  await Promise.all([feed?.close(), lakeWatch.close(), lakeBooks.close(), pools])
  metrics.close()
  return (await pools).every(Boolean)
}

function recordEndpoints(
  pool: RecordPool | undefined,
  validators: RecordValidators,
  answerCache: AnswerCache,
): Endpoint[] {
  if (pool === undefined) return []
  const service = { answers: new RecordAnswers(pool, validators, answerCache), validators }
  return [
    candlesEndpoint(service),
    observationsEndpoint(service),
    climateEndpoint(service),
    climateGapsEndpoint(service),
  ]
}

/** The endpoints of the API, in the order in which the documentation lists them. */
function createEndpoints(
  config: ServeConfig,
  dependencies: ServerDependencies,
  catalogue: Catalogue,
  { lobPool, recordPool, feed, lakeWatch, lakeBooks, metrics, answerCache, blockCache }: Background,
): Endpoint[] {
  const { store, checkEmbeddedDb } = dependencies
  const monitor = new HealthMonitor({
    embeddedDb: checkEmbeddedDb ?? recordPool?.checkDatabase ?? embeddedDbCheck(),
    // Where none is wanted (--store off) none can be missing.
    hostedDb: store === undefined ? async () => config.store === null : store.ping,
    sync: () => lakeWatch.status,
    async samples() {
      const { sampleCount } = await lakeBooks.firstFigures(HEALTH_CHECK_TIMEOUT_MS)
      return { files: sampleCount, records: store?.hasSampleRecords?.() ?? false }
    },
  })
  const cachePolicy = cachePolicyOf(config)
  const version = readVersion()
  const versions = (): DataVersions => feed?.versions ?? new Map<string, string>()
  const freshVersions =
    store &&
    new FreshVersions({
      read: async () => store.catalogue.versions(new AbortController().signal),
      isAway: () => versions().size === 0,
    })
  const validators = new RecordValidators({ versions, freshVersions, cachePolicy, version })
  const endpoints = [
    lobEndpoint({ answers: new LobAnswers(lobPool, blockCache), catalogue, cachePolicy, version }),
    ...recordEndpoints(recordPool, validators, answerCache),
    seriesListEndpoint(catalogue),
    seriesEndpoint(catalogue),
    marketListEndpoint(catalogue),
    marketEndpoint(catalogue),
    healthEndpoint(monitor),
    readyzEndpoint(() => store === undefined || catalogue.isLoaded),
    livezEndpoint,
  ]
  if (config.metrics === 'on') endpoints.push(metricsEndpoint(metrics))
  const described = [...endpoints, ...documentationEndpoints(endpoints)]
  return [...described, ...siteEndpoints(described, config)]
}

function cachePolicyOf(config: ServeConfig): CachePolicy {
  return new CachePolicy({ isShared: config.apiKeys.length === 0 })
}

/** What this process collects, its pull of the lake included. */
function collected(dependencies: ServerDependencies, { metrics, figures }: LakeWatch): CollectionMetrics {
  const { tasks = [], recorders = [], syncs = [] } = dependencies.collection?.() ?? {}
  const storage = dependencies.storage?.()
  return {
    tasks: metrics === undefined ? tasks : [...tasks, metrics],
    recorders,
    syncs: figures === undefined ? syncs : [...syncs, figures],
    storage,
  }
}

function createPools(
  { lake, shares }: ServeConfig,
  dependencies: ServerDependencies,
): Pick<Background, 'lobPool' | 'recordPool'> {
  const { logger, storeAddress: store, threadsAtStart } = dependencies
  const { lobWorkerUrl = LOB_WORKER_URL, recordWorkerUrl = RECORD_WORKER_URL } = dependencies
  const common = { lake, logger, shares, threadsAtStart }
  return {
    lobPool: new LobPool({ ...common, workerUrl: lobWorkerUrl }),
    recordPool: store && new RecordPool({ ...common, store, workerUrl: recordWorkerUrl }),
  }
}

function createMetrics(
  dependencies: ServerDependencies,
  {
    lobPool,
    recordPool,
    lakeWatch,
    lakeBooks,
    answerCache,
    blockCache,
  }: Pick<Background, 'lobPool' | 'recordPool' | 'lakeWatch' | 'lakeBooks' | 'answerCache' | 'blockCache'>,
): ServiceMetrics {
  const { store } = dependencies
  return new ServiceMetrics({
    collection: () => collected(dependencies, lakeWatch),
    newestRows: store?.newestRows ?? (async () => []),
    lakeBooks: () => lakeBooks.figures,
    answerCache,
    blockCache,
    takenSlots: () => lobPool.takenSlots,
    lanes: () => ({ lob: lobPool.slots, ...recordPool?.lanes }),
    queuedTasks: () => ({ lob: lobPool.queuedTasks, records: recordPool?.queuedTasks ?? 0 }),
    ingestAges: store === undefined ? async () => [] : store.ingestAges,
  })
}

/** Everything that runs beside the requests, not yet started, and the catalogue that it feeds. */
async function createBackground(
  config: ServeConfig,
  dependencies: ServerDependencies,
): Promise<{ readonly background: Background; readonly catalogue: Catalogue }> {
  const { logger, store } = dependencies
  const answerCache = new AnswerCache((config.answerCacheMb ?? ANSWER_CACHE_MB_DEFAULT) * BYTES_PER_MB)
  const catalogue = new Catalogue(cachePolicyOf(config), answerCache)
  const lakeWatch = await createLakeWatch(config.lake, config.sync, logger)
  const parts = {
    ...createPools(config, dependencies),
    lakeWatch,
    lakeBooks: new LakeBooks(config.lake, logger),
    answerCache,
    blockCache: config.blockCache ? new BlockCache({ ...config.blockCache, logger }) : undefined,
  }
  const feed =
    store === undefined
      ? undefined
      : new CatalogueFeed({
          catalogue,
          source: store.catalogue,
          logger,
          // Rows have moved: a copy of the lake needs their files.
          onManifestChange: () => lakeWatch.wake(),
        })
  return { background: { ...parts, feed, metrics: createMetrics(dependencies, parts) }, catalogue }
}

/** Starts serving and resolves when the port is bound, the threads are warm and the catalogue was asked for. */
export async function startServer(
  config: ServeConfig,
  dependencies: ServerDependencies,
): Promise<RunningServer> {
  const { logger } = dependencies
  const { background, catalogue } = await createBackground(config, dependencies)
  const { lobPool, recordPool, lakeWatch, lakeBooks, metrics } = background
  const lifecycle = new RequestLifecycle(
    createEndpoints(config, dependencies, catalogue, background),
    lifecycleOptions(config, logger, metrics),
  )
  let metricsServer: HttpServer | undefined
  try {
    lakeWatch.start()
    lakeBooks.start()
    await Promise.all([lobPool.warm(), recordPool?.warm(), background.feed?.start()])
    if (typeof config.metrics !== 'string')
      metricsServer = await startMetricsServer(config.metrics, metrics, logger)
    const { fairBytesPerS } = config.shares ?? DEFAULT_SHARES
    const http = await startHttpServer({ ...config, fairBytesPerS }, lifecycle.handle)
    let areThreadsEnded = true
    const shutDown = async (): Promise<void> => {
      const drained = lifecycle.drain()
      const isClean = await settlesWithin(drained, config.shutdownTimeoutMs)
      if (!isClean)
        logger.warn({ requests: lifecycle.activeCount }, 'cutting requests that did not finish in time')
      lifecycle.cut()
      http.close()
      // Cut requests are over when their workers have obeyed or are terminated.
      await settlesWithin(drained, 2 * WORKER_CANCEL_TIMEOUT_MS)
      metricsServer?.close()
      areThreadsEnded = await endBackground(background)
    }
    let closing: Promise<void> | undefined
    const close = (): Promise<void> => (closing ??= shutDown())
    return {
      host: config.host,
      port: http.port,
      metricsPort: metricsServer?.port ?? null,
      lobPool,
      close,
      hasStuckThreads: () => !areThreadsEnded,
    }
  } catch (error) {
    metricsServer?.close()
    await endBackground(background)
    throw error
  }
}
