// Synchronizes the lake of a running process with object storage: once at the start, then repeatedly after a pause, which is
// shorter after a failure and ends when `wake` is called. It reports the time of the last success for /health. Without object
// storage, health/lake-scan.ts does.

import { once } from 'node:events'
import { SYNC_INTERVAL_MS } from '../../shared/limits.ts'
import type { SyncStatus } from '../health/lake-scan.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { TaskLoop, type TaskMetrics, type TaskOutcome } from '../ingest/task-loop.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from './lake-sync.ts'
import { readOutcome } from './sync-journal.ts'

export interface LakeSyncScheduleOptions extends Omit<LakeSyncOptions, 'signal'> {
  readonly intervalMs?: number
  /** Whether `close` closes the remote store too. */
  readonly closesRemote?: boolean
  /** Called after each synchronization that took place, with its result and its start. */
  readonly onResult?: (result: LakeSyncResult, startMs: number) => void
  readonly onError?: (error: unknown) => void
}

export type LakeSyncSchedule = ReturnType<typeof lakeSyncSchedule>

export function lakeSyncSchedule(options: LakeSyncScheduleOptions) {
  const { lake, direction, clock = SYSTEM_CLOCK, intervalMs = SYNC_INTERVAL_MS } = options
  const closing = new AbortController()
  const first = new AbortController()
  let conflictCount = 0
  let status: SyncStatus = { lastSyncMs: null, fileCount: 0 }
  let running: Promise<void> = Promise.resolve()
  const run = async (signal: AbortSignal): Promise<TaskOutcome> => {
    const startMs = clock.nowMs()
    try {
      const result = await syncLake({ ...options, isRepeated: true, signal })
      if (result.failures.length === 0) status = { lastSyncMs: clock.nowMs(), fileCount: result.objectCount }
      conflictCount = result.conflicts.length
      options.onResult?.(result, startMs)
      return outcomeOf(result)
    } catch (error) {
      if (!signal.aborted) options.onError?.(error)
      throw error
    } finally {
      first.abort()
    }
  }
  const loop = new TaskLoop({ task: `lake-${direction}`, intervalMs, run, clock })
  return {
    /** Starts; resolves after the first synchronization, also when that failed. */
    async start(): Promise<void> {
      running = readOutcome(lake).then((last) => {
        status = last ?? status
        return loop.run(closing.signal)
      })
      await Promise.race([once(first.signal, 'abort'), running])
    },
    /** When the last synchronization without failures ended, also that of an earlier process. */
    get status(): SyncStatus {
      return status
    },
    /** Files are counted as rows. */
    get metrics(): TaskMetrics {
      return loop.metrics
    },
    /** Conflicts of the last synchronization: files that must not replace the object on the other side. */
    get figures() {
      return { task: loop.metrics.task, conflictCount }
    },
    /** Starts a synchronization now. */
    wake: () => loop.wake(),
    /** Aborts a running synchronization and resolves when it has ended. */
    async close(): Promise<void> {
      closing.abort(new Error('the synchronization was stopped'))
      await running
      if (options.closesRemote === true) options.remote.close()
    },
  }
}

/** The outcome of a synchronization as that of a task. Files are counted as rows. */
export function outcomeOf({ transferredCount, conflicts, failures }: LakeSyncResult): TaskOutcome {
  const [first] = failures
  return {
    rowCount: transferredCount,
    errorCount: failures.length + conflicts.length,
    failure: first === undefined ? null : { message: `${first.key}: ${first.reason}`, retryAfterMs: 0 },
  }
}
