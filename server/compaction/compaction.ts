// Moves closed days of candles and observations from the relational store to the lake. For each partition: record the state of the
// rows in the store; write the partition's whole file under a temporary name (the rows of the present file and those of the store);
// read it back; then, in one transaction, delete the rows, register the file and rename it. Wherever the process dies, the next run
// finds either the old or the new state. Only between rename and commit is the file ahead of the manifest. Readers do not notice,
// since they read it only up to the manifest's cut-over.
//
// Other servers have copies of the lake, which they fetch from object storage some time later. For them the last step can be split
// (`retireBeforeMs`): first the file is renamed, while its rows are still served from the store; a later run deletes the rows and
// moves the cut-over, once the file has been published long enough. Files have revision numbers, so that a server whose copy is too
// old for the manifest reports it instead of leaving rows out.

import { messageOf } from '../../shared/error-message.ts'
import { periodInstants, recordFileName } from '../../shared/lake-layout.ts'
import { COMPACTION_DELAY_MS } from '../../shared/limits.ts'
import { StoreError } from '../../shared/store-error.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { describeLakeWriteError } from '../lake/lake-write-error.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { readLatePartitions } from '../storage/manifest-store.ts'
import { PartitionChanged, scopesBefore } from '../storage/partition-rows.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { CompactionOptions, CompactionResult } from './compaction-options.ts'
import { compactPartition, type CompactionWork } from './partition-compaction.ts'
import { RECORD_TABLES, type RecordTable } from './record-table.ts'

/** Attempts to write a partition whose rows change meanwhile. */
const COMPACTION_ATTEMPTS_MAX = 5

/** The system's messages, as Node and DuckDB pass them on. */
const FULL_DISK = /ENOSPC|EDQUOT|no space left on device|disk quota exceeded/i
const READ_ONLY = /EACCES|EPERM|EROFS/

/**
 * Compacts every partition that has closed rows in the store. Resolves even if partitions failed (see the result); rejects if the
 * store is unavailable or the signal aborts. Repeated and concurrent runs are safe.
 */
export async function compactClosedDays(options: CompactionOptions): Promise<CompactionResult> {
  const { postgres, signal, clock = SYSTEM_CLOCK, delayMs = COMPACTION_DELAY_MS } = options
  const closedMs = Math.floor((clock.nowMs() - delayMs) / MS_PER_DAY) * MS_PER_DAY
  const result: CompactionResult = { partitions: [], published: [], failures: [] }
  for (const table of RECORD_TABLES) {
    for (const work of await findWork(postgres, table, closedMs)) {
      signal?.throwIfAborted()
      const path = recordFileName(table.dataset, work.scope, work.period)
      try {
        await compactAgain(options, work, closedMs, result)
      } catch (error) {
        signal?.throwIfAborted()
        const reason = reasonOf(error, options.lake)
        const isPassing = error instanceof StoreError || FULL_DISK.test(reason) || READ_ONLY.test(reason)
        result.failures.push({ path, reason, isPassing })
      }
    }
  }
  return result
}

function reasonOf(error: unknown, lake: string): string {
  const message = messageOf(error)
  // An error with another one as its cause has a reason of its own.
  const isOfSystem = error instanceof Error && error.cause === undefined
  const described = isOfSystem ? describeLakeWriteError(error, lake) : undefined
  const remedy = FULL_DISK.test(message) ? '. Free some space; the next run moves the rows.' : ''
  return described ?? message + remedy
}

/** The partitions that may have rows to move, oldest first within a scope. */
async function findWork(postgres: Postgres, table: RecordTable, closedMs: number): Promise<CompactionWork[]> {
  const found = new Map<string, CompactionWork>()
  const add = (scope: string, instantMs: number): CompactionWork => {
    const work = { table, scope, period: periodOf(table, instantMs) }
    found.set(`${scope} ${work.period}`, work)
    return work
  }
  const scopes = await postgres.run<{ scope: string; first: number }>(scopesBefore(table.dataset, closedMs))
  for (const { scope, first } of scopes) {
    for (let ms = first; ms < closedMs;) ms = periodInstants(add(scope, ms).period).toMs
  }
  for (const { scope, period_start } of await readLatePartitions(postgres, table.dataset))
    add(scope, period_start)
  return [...found.values()]
}

function periodOf({ dataset }: RecordTable, instantMs: number): string {
  return new Date(instantMs).toISOString().slice(0, dataset === 'candles' ? 7 : 4)
}

/** Starts over, a bounded number of times, if rows arrive while the file is written. */
async function compactAgain(
  options: CompactionOptions,
  work: CompactionWork,
  closedMs: number,
  result: CompactionResult,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await compactPartition(options, work, closedMs, result)
      return
    } catch (error) {
      if (!(error instanceof PartitionChanged) || attempt === COMPACTION_ATTEMPTS_MAX) throw error
    }
  }
}
