// What a compaction is given, and what it tells when it has ended.

import type { Postgres } from '../storage/postgres.ts'
import type { Clock } from '../tasks/clock.ts'

/** What has just been done for a partition. */
export type CompactionStep = 'noted' | 'written' | 'verified' | 'registered' | 'renamed' | 'committed'

export interface CompactionOptions {
  readonly postgres: Postgres
  /** The lake's root directory. */
  readonly lake: string
  /** Time after a day's end before it counts as closed. */
  readonly delayMs?: number
  /**
   * Rows leave the store only when the file that holds them was published before this instant (milliseconds since the
   * epoch). Absent: they leave it as soon as the file is there.
   */
  readonly retireBeforeMs?: number
  /**
   * Brings a file that the lake lacks, or has in an earlier revision, from where others may have pushed it; or nothing. The
   * key is its name below the lake's root.
   */
  readonly fetchFile?:
    | ((
        file: { readonly key: string; readonly revision: bigint },
        signal: AbortSignal | undefined,
      ) => Promise<void>)
    | undefined
  readonly clock?: Clock
  readonly signal?: AbortSignal
  /** Waited for; what it throws ends the partition's compaction as if the step had failed. */
  readonly onStep?: (step: CompactionStep, path: string) => Promise<void> | void
}

export interface CompactedPartition {
  /** Below the lake's root. */
  readonly path: string
  readonly movedRows: bigint
  readonly fileRows: bigint
}

/** A partition whose rows are in the lake and still in the store. */
export interface PublishedPartition {
  readonly path: string
  readonly rows: bigint
  readonly fileRows: bigint
}

export interface CompactionResult {
  readonly partitions: readonly CompactedPartition[]
  readonly published: readonly PublishedPartition[]
  /** Partitions that stay as they were. */
  readonly failures: readonly CompactionFailure[]
}

export interface CompactionFailure {
  readonly path: string
  readonly reason: string
  /** The disk is full or the store away: nothing is wrong with the partition. */
  readonly isPassing: boolean
}

/** A result while it is put together. */
export interface CompactionResultDraft {
  readonly partitions: CompactedPartition[]
  readonly published: PublishedPartition[]
}
