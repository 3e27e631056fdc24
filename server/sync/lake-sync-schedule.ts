// Synchronizes the lake of a running process with object storage: once at the start, then repeatedly after a pause, which is
// shorter after a failure and ends when `wake` is called. It reports the time of the last success for /health. Without object
// storage, health/lake-scan.ts does.

import { SYNC_INTERVAL_MS } from '../../shared/limits.ts'
import type { SyncStatus } from '../health/lake-scan.ts'
import { type Clock, SYSTEM_CLOCK } from '../tasks/clock.ts'
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

export class LakeSyncSchedule {
  readonly #options: LakeSyncScheduleOptions
  readonly #clock: Clock
  readonly #loop: TaskLoop
  readonly #closing = new AbortController()
  #conflictCount = 0
  #status: SyncStatus = { lastSyncMs: null, fileCount: 0 }
  #running: Promise<void> = Promise.resolve()
  #onFirst: (() => void) | undefined

  constructor(options: LakeSyncScheduleOptions) {
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#loop = new TaskLoop({
      task: `lake-${options.direction}`,
      intervalMs: options.intervalMs ?? SYNC_INTERVAL_MS,
      run: (signal) => this.#once(signal),
      clock: this.#clock,
    })
  }

  /** Starts; resolves after the first synchronization, also when that failed. */
  start(): Promise<void> {
    const first = new Promise<void>((resolve) => {
      this.#onFirst = resolve
    })
    this.#running = this.#readLast().then(() => this.#loop.run(this.#closing.signal))
    return Promise.race([first, this.#running])
  }

  /** When the last synchronization without failures ended, also that of an earlier process. */
  get status(): SyncStatus {
    return this.#status
  }

  /** Files are counted as rows. */
  get metrics(): TaskMetrics {
    return this.#loop.metrics
  }

  /** Conflicts of the last synchronization: files that must not replace the object on the other side. */
  get figures(): { readonly task: string; readonly conflictCount: number } {
    return { task: this.#loop.metrics.task, conflictCount: this.#conflictCount }
  }

  /** Starts a synchronization now. */
  wake(): void {
    this.#loop.wake()
  }

  /** Aborts a running synchronization and resolves when it has ended. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the synchronization was stopped'))
    await this.#running
    if (this.#options.closesRemote === true) this.#options.remote.close()
  }

  async #readLast(): Promise<void> {
    this.#status = (await readOutcome(this.#options.lake)) ?? this.#status
  }

  async #once(signal: AbortSignal): Promise<TaskOutcome> {
    const startMs = this.#clock.nowMs()
    try {
      const result = await syncLake({ ...this.#options, isRepeated: true, signal })
      if (result.failures.length === 0) {
        this.#status = { lastSyncMs: this.#clock.nowMs(), fileCount: result.objectCount }
      }
      this.#conflictCount = result.conflicts.length
      this.#options.onResult?.(result, startMs)
      return outcomeOf(result)
    } catch (error) {
      if (!signal.aborted) this.#options.onError?.(error)
      throw error
    } finally {
      this.#onFirst?.()
    }
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
