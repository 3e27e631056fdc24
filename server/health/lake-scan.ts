// Counts the parquet files of the lake directory now and then. Where no object storage is mirrored, such a look at the
// directory is what /health calls the sync. Only directories are read, asynchronously and up to a bound.

import { opendir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import { RepeatedTurns } from '../tasks/repeated-turns.ts'

/** Looks at the lake directory: the pause between two, and the entries and levels that one visits at most. */
const LAKE_SCAN_INTERVAL_MS = 5 * 60 * 1000
const LAKE_SCAN_ENTRIES_MAX = 5_000_000
const LAKE_SCAN_DEPTH_MAX = 6

/** The last synchronization of the lake directory. */
export interface SyncStatus {
  /** Milliseconds since the epoch; null before the first one. */
  readonly lastSyncMs: number | null
  readonly fileCount: number
}

async function countParquetFiles(lake: string, signal: AbortSignal): Promise<number> {
  const pending = [{ path: lake, depth: 0 }]
  let entries = 0
  let files = 0
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    for await (const entry of await opendir(next.path)) {
      signal.throwIfAborted()
      entries += 1
      if (entries > LAKE_SCAN_ENTRIES_MAX)
        throw new Error(`the lake has more than ${LAKE_SCAN_ENTRIES_MAX} entries`)
      if (entry.isDirectory() && next.depth < LAKE_SCAN_DEPTH_MAX)
        pending.push({ path: join(next.path, entry.name), depth: next.depth + 1 })
      else if (entry.isFile() && entry.name.endsWith('.parquet') && !entry.name.startsWith('.')) files += 1
    }
  }
  return files
}

export class LakeScan {
  readonly #lake: string
  readonly #logger: Logger
  readonly #turns = new RepeatedTurns(LAKE_SCAN_INTERVAL_MS, (signal) => this.#scan(signal))
  #status: SyncStatus = { lastSyncMs: null, fileCount: 0 }

  constructor(lake: string, logger: Logger) {
    this.#lake = lake
    this.#logger = logger
  }

  get status(): SyncStatus {
    return this.#status
  }

  /** Scans now and, from then on, a while after each scan. */
  start(): void {
    void this.#turns.start()
  }

  /** Resolves when no scan runs any more. */
  async close(): Promise<void> {
    await this.#turns.close()
  }

  async #scan(signal: AbortSignal): Promise<void> {
    try {
      const fileCount = await countParquetFiles(this.#lake, signal)
      this.#status = { lastSyncMs: Date.now(), fileCount }
    } catch (error) {
      if (!signal.aborted) this.#logger.warn({ err: error }, 'the lake directory cannot be scanned')
    }
  }
}
