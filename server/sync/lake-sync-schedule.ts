// Keeps a running process's lake up to date: a synchronization now and one a while after each. Without object storage a
// look at the lake directory takes its place, so that /health has something true to say.

import { SYNC_INTERVAL_MS, SYNC_OBJECTS_MAX, SYNC_STALE_MS } from '../../shared/limits.ts'
import { type Clock, SYSTEM_CLOCK } from '../ingest/clock.ts'
import { DirectoryStore } from './directory-store.ts'
import { type LakeSyncOptions, type LakeSyncResult, syncLake } from './lake-sync.ts'
import { readOutcome } from './sync-journal.ts'

/** The `sync` block of a health report (interface.md section 2.8). */
export interface LakeSyncStatus {
  /** RFC 3339 in UTC, null before the first one. */
  readonly last_sync: string | null
  readonly file_count: number
  /** Whether it was more than two hours ago; before the first one, whether the process started so long ago. */
  readonly is_stale: boolean
}

export interface LakeSyncScheduleOptions {
  readonly lake: string
  /** Null where no object storage is configured. */
  readonly mirror: Omit<LakeSyncOptions, 'lake' | 'signal' | 'clock'> | null
  readonly intervalMs?: number
  readonly clock?: Clock
  /** Called after each synchronization of a mirror. */
  readonly onResult?: (result: LakeSyncResult) => void
  readonly onError?: (error: unknown) => void
}

export class LakeSyncSchedule {
  readonly #options: LakeSyncScheduleOptions
  readonly #clock: Clock
  readonly #closing = new AbortController()
  readonly #startedMs: number
  #lastSyncMs: number | null = null
  #fileCount = 0
  #running: Promise<void> = Promise.resolve()

  constructor(options: LakeSyncScheduleOptions) {
    this.#options = options
    this.#clock = options.clock ?? SYSTEM_CLOCK
    this.#startedMs = this.#clock.nowMs()
  }

  /** Starts; resolves after the first synchronization, also when that failed. */
  start(): Promise<void> {
    const first = this.#readLast().then(() => this.#once())
    this.#running = first.then(() => this.#goOn())
    return first
  }

  lakeSyncStatus(): LakeSyncStatus {
    const lastMs = this.#lastSyncMs
    return {
      last_sync: lastMs === null ? null : new Date(lastMs).toISOString(),
      file_count: this.#fileCount,
      is_stale: this.#clock.nowMs() - (lastMs ?? this.#startedMs) > SYNC_STALE_MS,
    }
  }

  /** The same as numbers. */
  get status(): { readonly lastSyncMs: number | null; readonly fileCount: number } {
    return { lastSyncMs: this.#lastSyncMs, fileCount: this.#fileCount }
  }

  /** Breaks off what runs and resolves when nothing runs any more. The remote store stays the caller's. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the synchronization was stopped'))
    await this.#running
  }

  /** What an earlier process achieved counts too. */
  async #readLast(): Promise<void> {
    if (this.#options.mirror === null) return
    const last = await readOutcome(this.#options.lake)
    if (last === undefined) return
    this.#lastSyncMs = last.lastSyncMs
    this.#fileCount = last.fileCount
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
    const { lake, mirror, onResult, onError } = this.#options
    const { signal } = this.#closing
    try {
      if (mirror === null) {
        this.#note(await countFiles(lake, signal))
        return
      }
      const result = await syncLake({ ...mirror, lake, signal, clock: this.#clock })
      if (result.failures.length === 0) this.#note(result.objectCount)
      onResult?.(result)
    } catch (error) {
      if (!signal.aborted) onError?.(error)
    }
  }

  #note(fileCount: number): void {
    this.#fileCount = fileCount
    this.#lastSyncMs = this.#clock.nowMs()
  }
}

async function countFiles(lake: string, signal: AbortSignal): Promise<number> {
  let count = 0
  for await (const { key } of new DirectoryStore(lake).list(signal)) {
    count += 1
    if (count > SYNC_OBJECTS_MAX)
      throw new Error(`the lake has more than ${SYNC_OBJECTS_MAX} files, ${key} among them`)
  }
  return count
}
