// The parts of the server that outlive requests: threads, the catalogue, the watches over the lake, the answer cache and the
// metrics.

import type { Logger } from 'pino'
import type { ServeConfig } from './config.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { AnswerCache } from '../answers/answer-cache.ts'
import { Catalogue } from '../catalogue/catalogue.ts'
import { CatalogueFeed } from '../catalogue/catalogue-feed.ts'
import type { CollectionMetrics } from '../metrics/collection-metrics.ts'
import { ANSWER_CACHE_MB_DEFAULT } from './fairness-options.ts'
import type { DatabaseCheck } from '../health/health-monitor.ts'
import { LakeBooks } from '../health/lake-books.ts'
import type { StorageFigures } from '../health/storage-watch.ts'
import { CachePolicy } from '../http/cache-policy.ts'
import { LakeVersions } from '../lake/lake-versions.ts'
import { LOB_WORKER_URL, LobPool } from '../lob/lob-pool.ts'
import { ServiceMetrics } from '../metrics/service-metrics.ts'
import { RECORD_WORKER_URL, RecordPool } from '../records/record-pool.ts'
import { createLakeWatch, type LakeWatch } from '../sync/lake-watch.ts'
import type { StoreServices } from '../catalogue/store-services.ts'

export interface ServerDependencies {
  readonly logger: Logger
  /** Without it there is no catalogue: only the order books of the lake are served. */
  readonly store?: StoreServices
  /** Where record threads reach the relational store; without it only coverage and gaps are served as records. */
  readonly storeAddress?: StoreAddress
  /** Sends a query to the embedded analytical database, instead of the record threads. */
  readonly checkEmbeddedDb?: DatabaseCheck
  /** The figures of collecting in this process; undefined before it has started. */
  readonly collection?: () => CollectionMetrics | undefined
  /** The free space where the process writes. */
  readonly storage?: () => StorageFigures
  /** Other worker files, for tests. */
  readonly lobWorkerUrl?: URL
  readonly recordWorkerUrl?: URL
}

const BYTES_PER_MB = 1024 * 1024

/** The parts that outlive requests and must be closed. */
export type Background = Awaited<ReturnType<typeof createBackground>>

/** Resolves to whether every thread has exited and no thread of Node's pool waits for a disk. */
export async function endBackground(background: Background): Promise<boolean> {
  const { lobPool, recordPool, feed, lakeWatch, lakeBooks, lakeVersions, metrics } = background
  const pools = Promise.all([lobPool.close(), recordPool.close()])
  await Promise.all([feed?.close(), lakeWatch.close(), lakeBooks.close(), lakeVersions.close(), pools])
  metrics.close()
  return (await pools).every(Boolean)
}

/** The figures of collecting in this process, including its pull of the lake. */
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

/** Reads the ends again only when the version of the manifest has changed. */
function rememberedEnds(
  read: () => Promise<ReadonlyMap<string, number>>,
  versionNow: () => string | undefined,
): () => Promise<ReadonlyMap<string, number>> {
  let known: { readonly version: string; readonly ends: ReadonlyMap<string, number> } | undefined
  return async () => {
    const version = versionNow()
    if (version === undefined) throw new Error('the store is away')
    if (known?.version !== version) known = { version, ends: await read() }
    return known.ends
  }
}

/** Creates the background without starting it. */
export async function createBackground(config: ServeConfig, dependencies: ServerDependencies) {
  const { logger, store, storeAddress = null } = dependencies
  const { lobWorkerUrl = LOB_WORKER_URL, recordWorkerUrl = RECORD_WORKER_URL } = dependencies
  const { lake, shares } = config
  const answerCache = new AnswerCache((config.answerCacheMb ?? ANSWER_CACHE_MB_DEFAULT) * BYTES_PER_MB)
  // Without API keys, shared caches may store answers.
  const cachePolicy = new CachePolicy({ isShared: config.apiKeys.length === 0 })
  const catalogue = new Catalogue(cachePolicy, answerCache)
  const lakeWatch = await createLakeWatch(lake, config.sync, logger)
  const lobPool = new LobPool({ lake, logger, shares, workerUrl: lobWorkerUrl })
  const recordPool = new RecordPool({ lake, logger, shares, store: storeAddress, workerUrl: recordWorkerUrl })
  const lakeBooks = new LakeBooks(lake, logger)
  const feed =
    store &&
    new CatalogueFeed({
      catalogue,
      source: store.catalogue,
      logger,
      // Rows were moved to the lake: this copy of the lake needs their files, and they can be pinned now.
      onManifestChange() {
        lakeWatch.wake?.()
        lakeVersions.wake()
      },
    })
  const lakeVersions = new LakeVersions({
    lake,
    logger,
    keepMs: (config.keepVersionsDays ?? 0) * MS_PER_DAY,
    coldEnds: store?.coldEnds && rememberedEnds(store.coldEnds, () => feed?.versions.get('lake_manifest')),
    onBooks: async (keys, signal) => {
      await recordPool.readAhead(keys, signal)
      logger.debug({ files: keys.length }, 'the footers of order-book files are read ahead')
    },
  })
  const metrics = new ServiceMetrics({
    collection: () => collected(dependencies, lakeWatch),
    newestRows: store?.newestRows ?? (async () => []),
    tradeProof: store?.tradeProof ?? (async () => undefined),
    lakeBooks: () => lakeBooks.figures,
    answerCache,
    takenSlots: () => lobPool.takenSlots,
    lanes: () => ({ lob: lobPool.slots, ...recordPool.lanes }),
    queuedTasks: () => ({ lob: lobPool.queuedTasks, records: recordPool.queuedTasks }),
    ingestAges: store?.ingestAges ?? (async () => []),
  })
  const caches = { cachePolicy, answerCache, catalogue }
  return { ...caches, lobPool, recordPool, feed, lakeWatch, lakeBooks, lakeVersions, metrics }
}
