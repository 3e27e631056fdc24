// Collection as a service inside a process: the sources' schedule, the recorders, the compaction and the push to object storage run
// side by side, each a task with its own state, back-off and figures. A failed task does not stop the others. `bookcast ingest`
// uses it and, on a single machine, so does the serving process.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
import { retried } from '../tasks/retry.ts'
import { TaskLoop } from '../ingest/task-loop.ts'
import { collectorSchedule } from '../ingest/collector.ts'
import type { RegistryOptions } from '../ingest/registry.ts'
import type { CollectionMetrics } from '../metrics/collection-metrics.ts'
import type { OnListed } from '../recorder/market-discovery.ts'
import { writeMarketNames } from '../storage/market-name-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import { lakeSyncSchedule, outcomeOf } from '../sync/lake-sync-schedule.ts'
import { fetchLakeFile, type WantedFile } from '../sync/lake-fetch.ts'
import { type LakeSyncResult, syncLake } from '../sync/lake-sync.ts'
import type { ObjectStore } from '../sync/object-store.ts'
import { isRecorded, pullOpenDates, pushNewSegments, RAW_PUSH_INTERVAL_MS } from '../sync/open-dates.ts'
import { RawFolder } from '../fold/raw-folder.ts'
import { logSync } from '../sync/sync-log.ts'
import { openObjectStore } from '../sync/sync-target.ts'
import { unpushedFiles } from '../sync/unpushed-files.ts'
import { type LobSource, lobSources } from '../../shared/lob-sources.ts'
import { RECORD_PARTITIONS } from '../../shared/lake-layout.ts'
import type { CollectConfig, PushConfig } from './collect-config.ts'
import { compactionTask } from './compaction-task.ts'
import { PushLog } from './push-log.ts'
import { recorderTask } from './recorder-task.ts'

/** Timeout of the last push. An unresponsive object storage delays shutdown for at most twice this long. */
const LAST_PUSH_MS_MAX = 15_000
const REST_LOOK_MS = 50
/** Recorders wait for the raw segments of the open dates at most this long. */
const OPEN_DATES_MS_MAX = 30_000
/** Files named in the log when the last push failed. */
const UNPUSHED_TOLD_MAX = 100

export interface CollectionOptions extends Omit<RegistryOptions, 'names'> {
  readonly config: CollectConfig
  /** Migrated. It must stay open until `stop` has resolved. */
  readonly postgres: Postgres
  readonly logger: Logger
}

export interface Collection {
  metrics(): CollectionMetrics
  /**
   * Starts no further work and resolves when the running work has ended. False if the last push failed: the log names the files
   * that are not in object storage.
   */
  stop(): Promise<boolean>
}

/** Starts at once. Failures do not reach the caller: they are logged, counted and retried. */
export function startCollection(options: CollectionOptions): Collection {
  const { config, postgres, logger } = options
  const clock = options.http?.clock
  const stopping = new AbortController()
  const sources = collectorSchedule({ ...options, config: config.ingest, names: config.names })
  const pushes = new PushLog()
  const recorded = lobSources().filter((source) => config.recording?.[source] !== undefined)
  const push = config.push === null ? undefined : openPush(config.push, recorded, pushes, logger, clock)
  const compaction =
    config.compaction === null
      ? undefined
      : compactionTask({
          config: config.compaction,
          postgres,
          logger,
          clock,
          pushes: push === undefined ? null : pushes,
          fetchFile: push?.fetchFile,
          onChange: () => push?.schedule.wake(),
        })
  let naming: Promise<unknown> = Promise.resolve()
  const onListed: OnListed = (source, markets) => {
    const names = markets.flatMap(({ marketId: market_id, series, words }) =>
      words === undefined ? [] : [{ source, series, market_id, ...words }],
    )
    naming = writeMarketNames(postgres, names).catch((error: unknown) =>
      logger.warn(
        { err: error, source },
        'cannot store the names of markets; trying again at the next listing',
      ),
    )
  }
  const { recording } = config
  const recorders =
    recording === null
      ? []
      : recorded.map((exchange) => recorderTask({ recording, exchange, logger, clock, onListed }))
  const pulled = push?.pullOpenDates(stopping.signal) ?? Promise.resolve()
  const running = [
    sources
      .run(stopping.signal)
      .catch((error: unknown) => logger.error({ err: error }, 'the collector has failed')),
    ...recorders.map(async (recorder) => {
      await pulled
      if (!stopping.signal.aborted) await recorder.run(stopping.signal)
    }),
    compaction?.run(stopping.signal),
    push && runPushes(push, pulled, stopping.signal),
  ]
  return {
    metrics: () => ({
      tasks: [
        ...sources.metrics(),
        ...[...recorders, compaction, push?.schedule, push?.raw].flatMap((task) => task?.metrics ?? []),
      ],
      recorders: recorders.flatMap(({ recorderMetrics }) => recorderMetrics ?? []),
      syncs: push === undefined ? [] : [push.schedule.figures],
    }),
    async stop() {
      stopping.abort(new Error('collecting is stopped'))
      // What the recorders publish when they end is pushed afterwards.
      await Promise.all([push?.rest(), ...running])
      await naming
      return (await push?.close()) ?? true
    },
  }
}

/** Pushes start together with the recorders. */
async function runPushes(
  { schedule, raw }: ReturnType<typeof openPush>,
  pulled: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  await pulled
  if (signal.aborted) return
  void schedule.start()
  await raw?.run(signal)
}

function openPush(
  config: PushConfig,
  sources: readonly LobSource[],
  pushes: PushLog,
  logger: Logger,
  clock: Clock = SYSTEM_CLOCK,
) {
  const { lake, to, settings, intervalMs, raw } = config
  const remote = openObjectStore(to, settings)
  const log = logSync(logger, 'pushed')
  const common = { lake, remote, direction: 'push', raw, clock } as const
  const openDates =
    raw && sources.length > 0 ? openOpenDates(config, remote, sources, logger, clock) : undefined
  const schedule = lakeSyncSchedule({
    ...common,
    folder: new RawFolder(lake),
    isRecorded: isRecorded(sources, clock),
    intervalMs,
    onResult(result, startMs) {
      if (hasAllRecords(result)) pushes.note(startMs, clock.nowMs())
      log.onResult(result)
    },
    onError: (error) => log.onError(error),
  })
  return {
    schedule,
    raw: openDates?.task,
    pullOpenDates: async (signal: AbortSignal): Promise<void> => await openDates?.pull(signal),
    // A file is fetched into an empty lake before rows are added to it; otherwise it would lose its earlier rows.
    fetchFile: (file: WantedFile, signal: AbortSignal | undefined) =>
      fetchLakeFile(lake, remote, file, signal),
    /** Waits for a running push to end, with a timeout: an aborted push leaves half of its files. */
    async rest(): Promise<void> {
      const untilMs = performance.now() + LAST_PUSH_MS_MAX
      while (schedule.metrics.nextRunAtMs === null && performance.now() < untilMs) await sleep(REST_LOOK_MS)
    },
    /** Pushes a last time; false if a lake file is not in object storage after that. */
    async close(): Promise<boolean> {
      await schedule.close()
      // No later push folds dates that this one leaves, so folding is not throttled.
      const folder = new RawFolder(lake, { shareMax: 1 })
      const signal = timeLimit(remote, LAST_PUSH_MS_MAX)
      const push = async (): Promise<void> => {
        try {
          log.onResult(await syncLake({ ...common, folder, signal }))
        } catch (error) {
          log.onError(error)
          throw error
        }
      }
      // Object storage may be back within the time limit. Every error has been logged.
      await retried(push, { signal, attemptsMax: Infinity }).catch(() => {})
      remote.close()
      return tellUnpushed(await unpushedFiles(lake, remote.name, raw), logger)
    },
  }
}

/** Pulls the raw segments of the open dates once, and pushes new segments of them repeatedly. */
function openOpenDates(
  { lake, intervalMs }: PushConfig,
  remote: ObjectStore,
  sources: readonly LobSource[],
  logger: Logger,
  clock: Clock,
) {
  const pushLog = logSync(logger, 'pushed')
  const pullLog = logSync(logger, 'synchronized')
  const options = { lake, remote, sources, clock }
  let isPulled = false
  const pull = async (stop: AbortSignal): Promise<void> => {
    if (isPulled) return
    try {
      const signal = AbortSignal.any([stop, timeLimit(remote, OPEN_DATES_MS_MAX)])
      const result = await pullOpenDates({ ...options, signal })
      pullLog.onResult(result)
      isPulled = result.failures.length === 0
    } catch (error) {
      if (stop.aborted) return
      pullLog.onError(
        error,
        'cannot pull the raw segments of today and yesterday; the collector starts and tries again',
      )
    }
  }
  const task = new TaskLoop({
    task: 'raw-push',
    intervalMs: Math.min(intervalMs, RAW_PUSH_INTERVAL_MS),
    clock,
    async run(signal: AbortSignal) {
      await pull(signal)
      const result = await pushNewSegments({ ...options, signal })
      pushLog.onResult(result)
      return outcomeOf(result)
    },
  })
  return { pull, task }
}

/** Aborts after `ms`, with an error that names the place. */
function timeLimit({ name }: ObjectStore, ms: number): AbortSignal {
  const limit = new AbortController()
  setTimeout(() => limit.abort(new Error(`${name}: not done within ${ms / 1000} s`)), ms).unref()
  return limit.signal
}

/** Logs the files that were not pushed; returns whether there are none. */
function tellUnpushed(keys: readonly string[], logger: Logger): boolean {
  if (keys.length === 0) return true
  const fields = { count: keys.length, files: keys.slice(0, UNPUSHED_TOLD_MAX) }
  logger.error(fields, 'the last push failed: these lake files are not in object storage')
  return false
}

/** Whether every record file is in object storage. Failures of order books do not keep rows in the store. */
function hasAllRecords({ failures, conflicts }: LakeSyncResult): boolean {
  const missing = [...conflicts, ...failures.map(({ key }) => key)]
  return !missing.some((key) => Object.keys(RECORD_PARTITIONS).includes(key.split('/')[0] ?? ''))
}
