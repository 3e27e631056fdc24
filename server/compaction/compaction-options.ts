// Options and result of a compaction.

import type { Postgres } from '../storage/postgres.ts'
import type { Clock } from '../tasks/clock.ts'

/** The step just finished for a partition. */
export type CompactionStep = 'noted' | 'written' | 'verified' | 'registered' | 'renamed' | 'committed'

export interface CompactionOptions {
  readonly postgres: Postgres
  /** The lake's root directory. */
  readonly lake: string
  /** Time after a day's end before it counts as closed. */
  readonly delayMs?: number
  /**
   * Rows leave the store only if the file that holds them was published before this instant (milliseconds since the epoch). Absent:
   * they leave it as soon as the file is there.
   */
  readonly retireBeforeMs?: number
  /**
   * Fetches a file that the lake lacks, or has in an earlier revision, from object storage, if it is there. The key is the file's
   * path below the lake's root.
   */
  readonly fetchFile?:
    | ((
        file: { readonly key: string; readonly revision: bigint },
        signal: AbortSignal | undefined,
      ) => Promise<void>)
    | undefined
  readonly clock?: Clock
  readonly signal?: AbortSignal
  /** Awaited. If it throws, the partition's compaction ends as if the step had failed. */
  readonly onStep?: (step: CompactionStep, path: string) => Promise<void> | void
}

/** A partition's rows that were moved or copied, and all rows of its file. */
export interface CompactedRows {
  /** Below the lake's root. */
  readonly path: string
  readonly rows: bigint
  readonly fileRows: bigint
}

/** What a run has done so far. */
export interface CompactionResult {
  readonly partitions: CompactedRows[]
  /** Partitions whose rows are in the lake and still in the store. */
  readonly published: CompactedRows[]
  /** Partitions that were not changed. */
  readonly failures: CompactionFailure[]
}

export interface CompactionFailure {
  readonly path: string
  readonly reason: string
  /** The disk is full or read-only, or the store unavailable: the partition itself is fine. */
  readonly isPassing: boolean
}
