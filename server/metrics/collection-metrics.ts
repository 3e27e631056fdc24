// Prometheus metrics of collecting: runs, rows, errors, last success and lag of each task (a source, a recorder, the
// compaction, a synchronization), and the state of each recorder's feed. The tasks count; this code reads their figures when
// the metrics are requested.

import type { Metric, Registry } from 'prom-client'
import { registryOf } from './metric-registry.ts'
import { metricOf, metricsBy } from './read-metrics.ts'
import type { DiskFigures, StorageFigures } from '../health/storage-watch.ts'
import type { RecorderMetrics } from '../recorder/recorder-metrics.ts'
import type { TaskMetrics } from '../ingest/task-loop.ts'
import type { NewestRow } from '../storage/newest-rows.ts'
import type { ReadTradeProof } from '../storage/trade-proof-store.ts'

const MS_PER_S = 1000

export interface CollectionMetrics {
  readonly tasks: readonly TaskMetrics[]
  readonly recorders: readonly RecorderMetrics[]
  /** Synchronizations with object storage, with the files that they must not replace. */
  readonly syncs?: readonly SyncFigures[]
  readonly storage?: StorageFigures | undefined
}

export interface SyncFigures {
  /** The task's name in `tasks`. */
  readonly task: string
  readonly conflictCount: number
}

/** The metrics, not registered yet. */
export function collectionMetrics(read: () => CollectionMetrics): Metric[] {
  const byTask = metricsBy('task', () => read().tasks.map((task) => [task.task, task]))
  const byExchange = metricsBy('exchange', () =>
    read().recorders.map((recorder) => [recorder.source, recorder]),
  )
  const byPlace = metricsBy('place', () => (read().storage?.disks ?? []).map((disk) => [disk.place, disk]))
  return [
    ...TASK_METRICS.map(({ name, help, valueOf }) => byTask(name, help, valueOf)),
    ...RECORDER_METRICS.map(({ name, help, valueOf }) => byExchange(name, help, valueOf)),
    ...DISK_METRICS.map(({ name, help, valueOf }) => byPlace(name, help, valueOf)),
    metricOf(
      'bookcast_sync_conflicts',
      'Files that were not brought over, because they cover less than the present file or another writer made that one.',
      () => (read().syncs ?? []).map(({ task, conflictCount }) => [{ task }, conflictCount]),
    ),
    metricOf('bookcast_recorder_log_bytes', "Size of a recorder's write-ahead log.", () =>
      Object.entries(read().storage?.walBytes ?? {}).map(([exchange, bytes]) => [{ exchange }, bytes]),
    ),
    metricOf('bookcast_lake_bytes', "Size of the lake's files.", () => {
      const bytes = read().storage?.lakeBytes ?? null
      return bytes === null ? [] : [[{ place: 'lake' }, bytes]]
    }),
  ]
}

/** The times of the newest rows in the store, by station and by source. */
export function newestRowMetrics(read: () => Promise<readonly NewestRow[]>): Metric[] {
  return [
    metricOf(
      'bookcast_newest_observation_timestamp_seconds',
      'Time of the newest observation of a station.',
      async () => {
        const rows = await read()
        return rows.filter(({ kind }) => kind === 'station').map(({ name, atS }) => [{ station: name }, atS])
      },
    ),
    metricOf(
      'bookcast_newest_row_timestamp_seconds',
      'Time of the newest row of a source (observations, candles, climate reports) in the store.',
      async () => {
        const rows = await read()
        return rows
          .filter(({ kind }) => kind !== 'station')
          .map(({ kind, name, atS }) => [{ dataset: kind, source: name }, atS])
      },
    ),
  ]
}

/** How many minutes of trades `bookcast verify --trades` has proven. */
export function tradeProofMetric(read: ReadTradeProof): Metric {
  return metricOf(
    'bookcast_trades_minutes',
    'Minutes of markets with a candle that were compared with their trades, and those of them that are proven.',
    async () => {
      const proof = await read()
      if (proof === undefined) return []
      return [
        [{ state: 'compared' }, proof.minutes],
        [{ state: 'proven' }, proof.proven],
      ]
    },
  )
}

/** The metrics of a process that only collects. */
export function collectorMetrics(
  read: () => CollectionMetrics,
  newestRows: () => Promise<readonly NewestRow[]> = async () => [],
  tradeProof: ReadTradeProof = async () => undefined,
): Registry {
  return registryOf([
    ...collectionMetrics(read),
    ...newestRowMetrics(newestRows),
    tradeProofMetric(tradeProof),
  ])
}

/** A metric with one value for each task, or for each recorder. */
interface Shown<Subject> {
  readonly name: string
  readonly help: string
  /** Null: no value. */
  readonly valueOf: (subject: Subject) => number | null
}

// oxfmt-ignore
const TASK_METRICS: readonly Shown<TaskMetrics>[] = [
  { name: 'bookcast_collect_runs_total', help: 'Runs of a task of collecting.', valueOf: (task) => task.runCount },
  { name: 'bookcast_collect_rows_total', help: 'New or changed rows that a task brought; messages of a recorder, files of a synchronization, each time they are transferred.', valueOf: (task) => task.rowCount },
  { name: 'bookcast_collect_errors_total', help: 'What failed in a task.', valueOf: (task) => task.errorCount },
  { name: 'bookcast_collect_empty_runs_total', help: 'Runs of a task that went well and brought no new row.', valueOf: (task) => task.emptyRunCount },
  { name: 'bookcast_collect_last_rows_timestamp_seconds', help: 'When a task last brought a new row.', valueOf: (task) => seconds(task.lastRowsAtMs) },
  { name: 'bookcast_collect_failures_in_row', help: 'Runs of a task that failed since it last succeeded.', valueOf: (task) => task.failureCount },
  { name: 'bookcast_collect_last_success_timestamp_seconds', help: 'When a task last succeeded.', valueOf: (task) => seconds(task.lastSuccessAtMs) },
  { name: 'bookcast_collect_lag_seconds', help: 'Time since a task last succeeded.', valueOf: (task) => ageS(task.lastSuccessAtMs) },
]

// oxfmt-ignore
const RECORDER_METRICS: readonly Shown<RecorderMetrics>[] = [
  { name: 'bookcast_recorder_messages_total', help: 'Messages received from an exchange.', valueOf: ({ frames }) => frames },
  { name: 'bookcast_recorder_received_bytes_total', help: 'Bytes received from an exchange.', valueOf: ({ bytes }) => bytes },
  { name: 'bookcast_recorder_gaps_total', help: 'Interruptions written into the books.', valueOf: gapCount },
  { name: 'bookcast_recorder_congestions_total', help: 'Times that the disk was slower than the feed.', valueOf: ({ congestions }) => congestions },
  { name: 'bookcast_recorder_markets', help: 'Markets that are followed: subscribed to on a connection.', valueOf: ({ lanes }) => sumOf(lanes, ({ subscribed }) => subscribed) },
  { name: 'bookcast_recorder_up', help: '1 while an exchange is recorded, 0 after it failed.', valueOf: ({ isRunning }) => Number(isRunning) },
  { name: 'bookcast_recorder_listed_markets', help: 'Markets that there are to follow.', valueOf: ({ markets }) => markets },
  { name: 'bookcast_recorder_refused_markets', help: 'Markets that the exchange does not let us follow.', valueOf: ({ lanes }) => sumOf(lanes, ({ refused }) => refused) },
  { name: 'bookcast_recorder_unplaced_markets', help: 'Markets that no connection had room for.', valueOf: ({ unplacedMarkets }) => unplacedMarkets },
  { name: 'bookcast_recorder_last_message_timestamp_seconds', help: 'When the exchange last said something.', valueOf: ({ lastFrameMs }) => seconds(lastFrameMs) },
  { name: 'bookcast_recorder_consolidation_failures_total', help: 'Times that what was recorded could not be brought into the lake.', valueOf: ({ foldFailures }) => foldFailures },
  { name: 'bookcast_recorder_discovery_failures_total', help: 'Times that the open markets could not be listed.', valueOf: ({ discoveryFailures }) => discoveryFailures },
  { name: 'bookcast_recorder_connections', help: 'Connections to an exchange.', valueOf: ({ lanes }) => lanes.filter(({ isConnected }) => isConnected).length },
  { name: 'bookcast_recorder_feed_delay_seconds', help: "A message's receive time less its exchange time.", valueOf: ({ lagMs }) => seconds(lagMs) },
  { name: 'bookcast_recorder_queued_bytes', help: 'Bytes that wait for the disk.', valueOf: ({ queuedBytes }) => queuedBytes },
  { name: 'bookcast_recorder_published_timestamp_seconds', help: 'When the open date was last brought into the lake.', valueOf: ({ fold }) => seconds(fold?.publishedAtMs || null) },
]

// oxfmt-ignore
const DISK_METRICS: readonly Shown<DiskFigures>[] = [
  { name: 'bookcast_disk_free_bytes', help: 'What may still be written where the process writes.', valueOf: ({ freeBytes }) => freeBytes },
  { name: 'bookcast_disk_size_bytes', help: 'Size of the file system where the process writes.', valueOf: ({ sizeBytes }) => sizeBytes },
  { name: 'bookcast_disk_low', help: '1 while a disk is nearly full.', valueOf: ({ isLow }) => Number(isLow) },
]

function sumOf<T>(items: readonly T[], valueOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + valueOf(item), 0)
}

function gapCount({ fold }: RecorderMetrics): number {
  return Object.values(fold?.gaps ?? {}).reduce((sum, count) => sum + count, 0)
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / MS_PER_S
}

function ageS(instantMs: number | null): number | null {
  return instantMs === null ? null : (Date.now() - instantMs) / MS_PER_S
}
