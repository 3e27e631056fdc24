// Counts the parquet files of the lake directory from time to time. If the lake is no copy of object storage, /health reports
// this scan as the sync.

import type { Logger } from 'pino'
import { RepeatedTurns } from '../tasks/repeated-turns.ts'
import { filesBelow } from '../lake/files-below.ts'

const LAKE_SCAN_INTERVAL_MS = 5 * 60 * 1000

/** The last synchronization of the lake directory. */
export interface SyncStatus {
  /** Milliseconds since the epoch; null before the first one. */
  readonly lastSyncMs: number | null
  readonly fileCount: number
}

export class LakeScan extends RepeatedTurns {
  readonly #lake: string
  readonly #logger: Logger
  #status: SyncStatus = { lastSyncMs: null, fileCount: 0 }

  constructor(lake: string, logger: Logger) {
    super(LAKE_SCAN_INTERVAL_MS)
    this.#lake = lake
    this.#logger = logger
  }

  get status(): SyncStatus {
    return this.#status
  }

  protected override async take(signal: AbortSignal): Promise<void> {
    try {
      let fileCount = 0
      for await (const _ of filesBelow(this.#lake, '.parquet', signal)) fileCount += 1
      this.#status = { lastSyncMs: Date.now(), fileCount }
    } catch (error) {
      if (!signal.aborted) this.#logger.warn({ err: error }, 'the lake directory cannot be scanned')
    }
  }
}
