// Keeps a running process's lake up to date with object storage: a synchronization now and one a while after each. It
// tells when the last one succeeded, in the form that /health takes; without object storage, health/lake-scan.ts does.

import { SYNC_INTERVAL_MS } from '../../shared/limits.ts'
import type { SyncStatus } from '../health/lake-scan.ts'
import { type Clock, SYSTEM_CLOCK } from '../ingest/clock.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from './lake-sync.ts'
import { readOutcome } from './sync-journal.ts'

export interface LakeSyncScheduleOptions extends Omit<LakeSyncOptions, 'signal'> {
  readonly intervalMs?: number
  /** Called after each synchronization that took place, with what failed in it. */
  readonly onResult?: (result: LakeSyncResult) => void
  readonly onError?: (error: unknown) => void
}

export class LakeSyncSchedule {
  readonly #options: LakeSyncScheduleOptions
  readonly #clock: Clock
  readonly #closing = new AbortController()
  #status: SyncStatus = { lastSyncMs: null, fileCount: 0 }
  #running: Promise<void> = Promise.resolve()

  constructor(options: LakeSyncScheduleOptions) {
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
  }

  /** Starts; resolves after the first synchronization, also when that failed. */
  start(): Promise<void> {
    const first = this.#readLast().then(() => this.#once())
    this.#running = first.then(() => this.#goOn())
    return first
  }

  /** When the last synchronization without failures ended, also that of an earlier process. */
  get status(): SyncStatus {
    return this.#status
  }

  /** Breaks off what runs and resolves when nothing runs any more. The remote store stays the caller's. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the synchronization was stopped'))
    await this.#running
  }

  async #readLast(): Promise<void> {
    this.#status = (await readOutcome(this.#options.lake)) ?? this.#status
  }

  async #goOn(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted) {
      try {
        await this.#clock.sleep(this.#options.intervalMs ?? SYNC_INTERVAL_MS, signal)
      } catch {
        return
      }
      await this.#once()
    }
  }

  async #once(): Promise<void> {
    const { onResult, onError } = this.#options
    const { signal } = this.#closing
    try {
      const result = await syncLake({ ...this.#options, signal })
      if (result.failures.length === 0) {
        this.#status = { lastSyncMs: this.#clock.nowMs(), fileCount: result.objectCount }
      }
      onResult?.(result)
    } catch (error) {
      if (!signal.aborted) onError?.(error)
    }
  }
}
