// All metrics of the serving process: requests, order-book slots and threads, the age of the ingested data, and the figures of
// collecting, read when the metrics are requested.

import type { Metric, Registry } from 'prom-client'
import { FILE_VERDICTS, LakeFileVerdicts } from '../../shared/lake-file-verdicts.ts'
import { LOB_CONCURRENT_REQUESTS_MAX } from '../../shared/limits.ts'
import type { CollectionMetrics } from './collection-metrics.ts'
import type { LakeBooksFigures } from '../health/lake-books.ts'
import type { AnswerCache } from '../answers/answer-cache.ts'
import { answerCacheMetrics } from './answer-cache-metrics.ts'
import { collectionMetrics, newestRowMetrics, tradeProofMetric } from './collection-metrics.ts'
import type { IngestAge } from '../catalogue/store-services.ts'
import { laneMetrics } from './lane-metrics.ts'
import { registryOf } from './metric-registry.ts'
import { metricOf } from './read-metrics.ts'
import type { NewestRow } from '../storage/newest-rows.ts'
import type { ReadTradeProof } from '../storage/trade-proof-store.ts'
import { RequestMetrics } from './request-metrics.ts'
import type { Slots } from '../workers/slots.ts'

/** What the metrics read when they are requested. */
export interface MetricSources {
  readonly takenSlots: () => number
  /** The slots of each lane. */
  readonly lanes: () => Readonly<Record<string, Slots>>
  /** Tasks that wait for a thread, by pool. */
  readonly queuedTasks: () => Readonly<Record<string, number>>
  /** Resolves to an empty list while the store is unreachable. */
  readonly ingestAges: () => Promise<readonly IngestAge[]>
  /** The figures of collecting in this process. */
  readonly collection: () => CollectionMetrics
  /** Resolves to an empty list without a store, or while it is unreachable. */
  readonly newestRows: () => Promise<readonly NewestRow[]>
  readonly tradeProof: ReadTradeProof
  readonly lakeBooks: () => LakeBooksFigures
  readonly answerCache: AnswerCache
}

export class ServiceMetrics {
  readonly #lakeFiles = new LakeFileVerdicts()
  readonly requests = new RequestMetrics()
  readonly registry: Registry

  constructor(sources: MetricSources) {
    this.registry = registryOf([
      ...this.requests.metrics(),
      ...createGauges(sources),
      ...laneMetrics(sources.lanes),
      ...answerCacheMetrics(sources.answerCache),
      metricOf(
        'bookcast_record_files',
        'Candles and observations files that requests have met, by what checking their checksum found.',
        () => {
          const counts = this.#lakeFiles.counts()
          return FILE_VERDICTS.map((checksum) => [{ checksum }, counts[checksum]])
        },
      ),
      ...collectionMetrics(sources.collection),
      ...newestRowMetrics(sources.newestRows),
      tradeProofMetric(sources.tradeProof),
    ])
  }

  close(): void {
    this.#lakeFiles.close()
    this.registry.clear()
  }
}

function createGauges(sources: MetricSources): Metric[] {
  return [
    metricOf(
      'bookcast_lob_slots_max',
      'Order-book requests processed at once.',
      () => LOB_CONCURRENT_REQUESTS_MAX,
    ),
    metricOf('bookcast_lob_slots_taken', 'Order-book requests being processed.', sources.takenSlots),
    metricOf('bookcast_pool_queue_tasks', 'Tasks that wait for a worker thread.', () =>
      Object.entries(sources.queuedTasks()).map(([pool, count]) => [{ pool }, count]),
    ),
    metricOf(
      'bookcast_books_covered_timestamp_seconds',
      'Until when the newest order-book file of a source covers: how far behind answers are.',
      () => Object.entries(sources.lakeBooks().coveredToMs).map(([source, ms]) => [{ source }, ms / 1000]),
    ),
    metricOf(
      'bookcast_sample_files',
      'Order-book files of the lake that are samples: invented.',
      () => sources.lakeBooks().sampleCount,
    ),
    metricOf('bookcast_ingest_age_seconds', 'Time since a source was last read successfully.', async () =>
      (await sources.ingestAges()).map(({ source, scope, ageS }) => [{ source, scope }, ageS]),
    ),
  ]
}
