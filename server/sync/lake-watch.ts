// The `sync` part of /health for a serving process: object storage if it is configured, otherwise scans of the directory.

import type { Logger } from 'pino'
import { LakeScan, type SyncStatus } from '../health/lake-scan.ts'
import type { TaskMetrics } from '../ingest/task-loop.ts'
import { LakeSyncSchedule } from './lake-sync-schedule.ts'
import { logSync } from './sync-log.ts'
import type { SyncConfig } from './sync-options.ts'

export interface LakeWatch {
  readonly status: SyncStatus
  /** Metrics of the synchronization with object storage, if there is one. */
  readonly metrics: TaskMetrics | undefined
  readonly figures: LakeSyncSchedule['figures'] | undefined
  /** Starts; the first round runs in the background. */
  start(): void
  /** Starts a round now. Call it when object storage may have new files. */
  wake(): void
  close(): Promise<void>
}

export async function createLakeWatch(
  lake: string,
  sync: SyncConfig | null,
  logger: Logger,
): Promise<LakeWatch> {
  if (sync === null) return watchDirectory(lake, logger)
  // The client of object storage is half of the code that a server loads, and most servers need only a directory.
  const { openObjectStore } = await import('./sync-target.ts')
  const remote = openObjectStore(sync.from, sync)
  const schedule = new LakeSyncSchedule({
    lake,
    remote,
    direction: 'pull',
    choice: sync.choice ?? null,
    ...(sync.intervalMs === undefined ? {} : { intervalMs: sync.intervalMs }),
    ...logSync(logger, 'synchronized'),
  })
  return {
    get status() {
      return schedule.status
    },
    get metrics() {
      return schedule.metrics
    },
    get figures() {
      return schedule.figures
    },
    start: () => void schedule.start(),
    wake: () => schedule.wake(),
    async close() {
      await schedule.close()
      remote.close()
    },
  }
}

function watchDirectory(lake: string, logger: Logger): LakeWatch {
  const scan = new LakeScan(lake, logger)
  return {
    get status() {
      return scan.status
    },
    metrics: undefined,
    figures: undefined,
    start: () => scan.start(),
    wake: () => {},
    close: () => scan.close(),
  }
}
