// What /health calls the sync of a serving process: object storage where it is configured, else looks at the directory.

import type { Logger } from 'pino'
import { LakeScan, type SyncStatus } from '../health/lake-scan.ts'
import { LakeSyncSchedule } from './lake-sync-schedule.ts'
import type { SyncConfig } from './sync-options.ts'
import { openObjectStore } from './sync-target.ts'

export interface LakeWatch {
  readonly status: SyncStatus
  /** Begins; the first round goes on beside everything else. */
  start(): void
  close(): Promise<void>
}

export function createLakeWatch(lake: string, sync: SyncConfig | null, logger: Logger): LakeWatch {
  if (sync === null) return new LakeScan(lake, logger)
  const remote = openObjectStore(sync.from, sync)
  if (remote === undefined) throw new Error(`${sync.from} is no place to synchronize with`)
  const schedule = new LakeSyncSchedule({
    lake,
    remote,
    direction: 'pull',
    onResult({ transferredCount, transferredBytes, conflicts, failures }) {
      const summary = { files: transferredCount, bytes: transferredBytes, conflicts: conflicts.length }
      if (transferredCount > 0 || conflicts.length > 0) logger.info(summary, 'the lake was synchronized')
      for (const { key, reason } of failures)
        logger.warn({ key, reason }, 'a lake file cannot be synchronized')
    },
    onError: (error) => logger.warn({ err: error }, 'the lake cannot be synchronized'),
  })
  return {
    get status() {
      return schedule.status
    },
    start: () => void schedule.start(),
    async close() {
      await schedule.close()
      remote.close()
    },
  }
}
