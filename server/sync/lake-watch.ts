// The `sync` part of /health for a serving process: object storage if it is configured, otherwise scans of the directory.

import type { Logger } from 'pino'
import { LakeScan } from '../health/lake-scan.ts'
import { type LakeSyncSchedule, lakeSyncSchedule } from './lake-sync-schedule.ts'
import { logSync } from './sync-log.ts'
import type { SyncConfig } from './sync-options.ts'

/** A scan of the directory has neither metrics nor conflicts, and need not be woken. */
export interface LakeWatch
  extends
    Pick<LakeScan, 'status' | 'close'>,
    Partial<Pick<LakeSyncSchedule, 'metrics' | 'figures' | 'wake'>> {
  /** Starts; the first round runs in the background. */
  start(): void
}

export async function createLakeWatch(
  lake: string,
  sync: SyncConfig | null,
  logger: Logger,
): Promise<LakeWatch> {
  if (sync === null) return new LakeScan(lake, logger)
  // The client of object storage is half of the code that a server loads, and most servers need only a directory.
  const { openObjectStore } = await import('./sync-target.ts')
  return lakeSyncSchedule({
    lake,
    remote: openObjectStore(sync.from, sync),
    closesRemote: true,
    direction: 'pull',
    choice: sync.choice ?? null,
    ...(sync.intervalMs === undefined ? {} : { intervalMs: sync.intervalMs }),
    ...logSync(logger, 'synchronized'),
  })
}
