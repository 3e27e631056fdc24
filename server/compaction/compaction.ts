// Moves closed days of candles and observations from the relational store to the lake. For each partition: note what the
// store holds, write the partition's whole file under a temporary name (the rows of the present file and those of the
// store), read it back, and then, in one transaction, delete the rows, register the file and give it its name. Wherever
// the process dies, the next run finds either the old state or the new one; only between the rename and the commit the
// file is ahead of the manifest, which readers do not notice, since they read it up to the manifest's cut-over.

import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isSeriesName, periodInstants, recordFileName } from '../../shared/lake-layout.ts'
import { COMPACTION_ATTEMPTS_MAX, COMPACTION_DELAY_MS } from '../../shared/limits.ts'
import type { LakePartition } from '../../shared/sql/manifest-queries.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { type Clock, SYSTEM_CLOCK } from '../ingest/clock.ts'
import { syncDirectory } from '../lake/durable-file.ts'
import { removeStaleTemporaries, temporaryPath } from '../lake/temporary-file.ts'
import {
  commitCompaction,
  type CompactedDataset,
  compactionState,
  PartitionChanged,
  readLatePartitions,
  readPartitions,
  readScopesBefore,
} from '../storage/manifest-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import { readHotRows } from './hot-rows.ts'
import { PartitionDraft } from './partition-draft.ts'
import { RECORD_TABLES, type RecordTable } from './record-table.ts'

/** What has just been done for a partition. */
export type CompactionStep = 'noted' | 'written' | 'verified' | 'registered' | 'renamed' | 'committed'

export interface CompactionOptions {
  readonly postgres: Postgres
  /** The lake's root directory. */
  readonly lake: string
  /** Time after a day's end before it counts as closed. */
  readonly delayMs?: number
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

export interface CompactionResult {
  readonly partitions: readonly CompactedPartition[]
  /** Partitions that stay as they were. */
  readonly failures: readonly { readonly path: string; readonly reason: string }[]
}

interface Work {
  readonly table: RecordTable
  readonly scope: string
  /** `2026-07` or `2026`. */
  readonly period: string
}

/**
 * Compacts every partition that has closed rows in the store. Resolves also when partitions failed (see the result);
 * rejects when the store is away or the signal aborts. Running it again, or twice at once, does no harm.
 */
export async function compactClosedDays(options: CompactionOptions): Promise<CompactionResult> {
  const { postgres, signal, clock = SYSTEM_CLOCK, delayMs = COMPACTION_DELAY_MS } = options
  const closedMs = Math.floor((clock.nowMs() - delayMs) / MS_PER_DAY) * MS_PER_DAY
  const partitions: CompactedPartition[] = []
  const failures: { path: string; reason: string }[] = []
  for (const table of RECORD_TABLES) {
    for (const work of await findWork(postgres, table, closedMs)) {
      signal?.throwIfAborted()
      const path = recordFileName(table.dataset, work.scope, work.period)
      try {
        const compacted = await compactAgain(options, work, closedMs)
        if (compacted !== undefined) partitions.push(compacted)
      } catch (error) {
        signal?.throwIfAborted()
        failures.push({ path, reason: error instanceof Error ? error.message : String(error) })
      }
    }
  }
  return { partitions, failures }
}

/** The partitions with rows to move, oldest first within a scope; some of them may turn out to have none. */
async function findWork(postgres: Postgres, table: RecordTable, closedMs: number): Promise<Work[]> {
  const found = new Map<string, Work>()
  const add = (scope: string, instantMs: number): Work => {
    const work = { table, scope, period: periodOf(table, instantMs) }
    found.set(`${scope} ${work.period}`, work)
    return work
  }
  for (const { scope, first } of await readScopesBefore(postgres, table.dataset, closedMs)) {
    for (let ms = first; ms < closedMs;) ms = periodInstants(add(scope, ms).period).toMs
  }
  for (const { scope, period_start } of await readLatePartitions(postgres, table.dataset))
    add(scope, period_start)
  return [...found.values()]
}

function periodOf({ dataset }: RecordTable, instantMs: number): string {
  return new Date(instantMs).toISOString().slice(0, dataset === 'candles' ? 7 : 4)
}

/** Starts over, a bounded number of times, when rows arrive while the file is written. */
async function compactAgain(
  options: CompactionOptions,
  work: Work,
  closedMs: number,
): Promise<CompactedPartition | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await compactPartition(options, work, closedMs)
    } catch (error) {
      if (!(error instanceof PartitionChanged) || attempt === COMPACTION_ATTEMPTS_MAX) throw error
    }
  }
}

async function compactPartition(
  options: CompactionOptions,
  { table, scope, period }: Work,
  closedMs: number,
): Promise<CompactedPartition | undefined> {
  const { postgres, lake, signal, onStep } = options
  if (!isSeriesName(scope)) throw new Error(`${JSON.stringify(scope)} cannot name a directory`)
  const { dataset } = table
  const { fromMs, toMs } = periodInstants(period)
  const name = recordFileName(dataset, scope, period)
  const path = join(lake, ...name.split('/'))
  const selection = { dataset, scopes: [scope], fromMs, toMs }
  const registered = (await readPartitions(postgres, selection)).find((each) => each.period_start === fromMs)
  await mkdir(dirname(path), { recursive: true })
  await removeStaleTemporaries(dirname(path))
  const temporary = temporaryPath(path)
  const draft = await PartitionDraft.open(table)
  try {
    const lastColdMs = (await isThere(path, registered !== undefined)) ? await draft.loadCold(path) : null
    // The cut-over never goes back, and no row of the file may lie behind it: the file may be ahead of the manifest.
    const cutOverMs = Math.min(
      toMs,
      Math.max(closedMs, registered?.cut_over ?? fromMs, (lastColdMs ?? -1) + 1),
    )
    const hot = { dataset, scope, fromMs, toMs: cutOverMs }
    const state = await compactionState(postgres, hot)
    if (state.rows === 0n) return undefined
    await onStep?.('noted', name)
    for await (const rows of readHotRows(postgres, table, hot, signal)) await draft.addHot(rows)
    await draft.mergeCommon()
    const figures = await draft.write(temporary)
    await onStep?.('written', name)
    await draft.verify(temporary)
    const file = await describeFile(temporary)
    await onStep?.('verified', name)
    signal?.throwIfAborted()
    await commitFile(options, partitionOf(hot, { toMs, name, rows: figures.rows }, file), state, temporary)
    await onStep?.('committed', name)
    return { path: name, movedRows: state.rows, fileRows: figures.rows }
  } finally {
    draft.close()
    await rm(temporary, { force: true })
  }
}

type CompactedPartitionEntry = LakePartition & { readonly dataset: CompactedDataset }

async function commitFile(
  { postgres, lake, onStep }: CompactionOptions,
  partition: CompactedPartitionEntry,
  state: Awaited<ReturnType<typeof compactionState>>,
  temporary: string,
): Promise<void> {
  const path = join(lake, ...partition.path.split('/'))
  let isRenamed = false
  await commitCompaction(postgres, partition, state, async () => {
    await onStep?.('registered', partition.path)
    // The transaction may be run again.
    if (!isRenamed) await rename(temporary, path)
    isRenamed = true
    await syncDirectory(dirname(path))
    await onStep?.('renamed', partition.path)
  })
}

function partitionOf(
  hot: {
    readonly dataset: CompactedDataset
    readonly scope: string
    readonly fromMs: number
    readonly toMs: number
  },
  { toMs, name, rows }: { readonly toMs: number; readonly name: string; readonly rows: bigint },
  file: { readonly sizeBytes: bigint; readonly sha256: string },
): CompactedPartitionEntry {
  return {
    dataset: hot.dataset,
    scope: hot.scope,
    period_start: hot.fromMs,
    period_end: toMs,
    cut_over: hot.toMs,
    path: name,
    rows,
    size_bytes: file.sizeBytes,
    sha256: file.sha256,
  }
}

/** Whether the partition has a file. One that the manifest knows must be there: without it rows would be lost. */
async function isThere(path: string, isRegistered: boolean): Promise<boolean> {
  try {
    return (await stat(path)).isFile()
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    if (isMissing && !isRegistered) return false
    throw new Error(`${path}${isRegistered ? ' is in the manifest but' : ''} cannot be read`, {
      cause: error,
    })
  }
}

/** Syncs the file, so that a power cut after the rename cannot empty it, and returns what the manifest says of it. */
async function describeFile(path: string): Promise<{ readonly sizeBytes: bigint; readonly sha256: string }> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
    const hash = createHash('sha256')
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk)
    return { sizeBytes: BigInt((await file.stat()).size), sha256: hash.digest('hex') }
  } finally {
    await file.close()
  }
}
