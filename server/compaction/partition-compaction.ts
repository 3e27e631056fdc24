// The compaction of one partition: its whole file is written under a temporary name, read back, and renamed in the transaction that
// registers it. compaction.ts explains the order of the steps.

import { constants, type Stats } from 'node:fs'
import { access, mkdir, open, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isErrno } from '../../shared/errno.ts'
import { periodInstants, recordFileName } from '../../shared/lake-layout.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { SYSTEM_CLOCK } from '../tasks/clock.ts'
import { syncNames } from '../lake/durable-file.ts'
import { digestOf } from '../lake/file-list.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import { partitionDraftPath, publishPartition, removeStaleTemporaries } from '../lake/temporary-file.ts'
import { commitCompaction, dropMergedRows, readPartitions } from '../storage/manifest-store.ts'
import { type CompactedPartition, compactionState, PartitionChanged } from '../storage/partition-rows.ts'
import {
  commitPublication,
  type Publication,
  readPublication,
  retirePublication,
} from '../storage/publication-store.ts'
import type { CompactionOptions, CompactionResult } from './compaction-options.ts'
import { readHotRows } from './hot-rows.ts'
import { forgetKept, keepingFile, keptBeside } from './kept-file.ts'
import { highestOf, isOutdated } from './latest-files.ts'
import { PartitionDraft } from './partition-draft.ts'
import type { RecordTable } from './record-table.ts'

/** A partition that may have rows to move. */
export interface CompactionWork {
  readonly table: RecordTable
  readonly scope: string
  /** `2026-07` or `2026`. */
  readonly period: string
}

type Partition = Awaited<ReturnType<typeof findPartition>>
/** The rows of one new file. */
type Draft = NonNullable<Awaited<ReturnType<typeof writeDraft>>>

/** Moves the partition's closed rows as far as allowed, and adds the outcome to the result. */
export async function compactPartition(
  options: CompactionOptions,
  work: CompactionWork,
  closedMs: number,
  result: CompactionResult,
): Promise<void> {
  const partition = await findPartition(options, work)
  const { published, name: path } = partition
  const hasCome = await fetchLatest(partition, options)
  if (published !== undefined) {
    const isDue = published.publishedMs < (options.retireBeforeMs ?? Infinity)
    const rows = isDue ? await retire(options, partition, published) : undefined
    if (rows !== undefined) result.partitions.push({ path, rows, fileRows: published.partition.rows })
    // Rows that closed or arrived late since then are written now; published rows only wait.
    const toMs = Math.min(partition.toMs, Math.max(closedMs, published.partition.cut_over))
    const state = await compactionState(options.postgres, { ...scopeOf(partition), toMs })
    if (state.rows === 0n || (!isDue && !hasCome && state.digest === published.digest)) return
  }
  const now = published === undefined ? partition : await findPartition(options, work)
  await writeClosedRows(options, now, closedMs, result)
}

/** The state of a partition before anything is written. */
async function findPartition(
  { postgres, lake }: CompactionOptions,
  { table, scope, period }: CompactionWork,
) {
  if (!isSeriesName(scope)) throw new Error(`${JSON.stringify(scope)} cannot name a directory`)
  const { dataset } = table
  const { fromMs, toMs } = periodInstants(period)
  const name = recordFileName(dataset, scope, period)
  const known = await readPartitions(postgres, { dataset, scopes: [scope], fromMs, toMs })
  return {
    table,
    scope,
    fromMs,
    toMs,
    /** Below the lake's root. */
    name,
    path: join(lake, ...name.split('/')),
    registered: known.find((each) => each.period_start === fromMs),
    published: await readPublication(postgres, { dataset, scope, fromMs }),
  }
}

function scopeOf({ table, scope, fromMs }: Partition) {
  return { dataset: table.dataset, scope, fromMs }
}

/** Deletes the rows of a published file, if they and the file are unchanged, and returns their number. */
async function retire(
  { postgres, onStep }: CompactionOptions,
  { path, name }: Partition,
  publication: Publication,
): Promise<bigint | undefined> {
  const file = await describeFile(path).catch(() => undefined)
  if (file?.sha256 !== publication.partition.sha256) return undefined
  try {
    const rows = await retirePublication(postgres, publication)
    await onStep?.('committed', name)
    return rows
  } catch (error) {
    if (error instanceof PartitionChanged) return undefined
    throw error
  }
}

async function writeClosedRows(
  options: CompactionOptions,
  partition: Partition,
  closedMs: number,
  result: CompactionResult,
): Promise<void> {
  const { path } = partition
  const temporary = partitionDraftPath(path)
  await mkdir(dirname(temporary), { recursive: true })
  // DuckDB's error would name no remedy.
  await access(dirname(temporary), constants.W_OK)
  await removeStaleTemporaries(dirname(temporary))
  const draft = await PartitionDraft.open(partition.table)
  try {
    const written = await writeDraft(options, partition, closedMs, { draft, temporary })
    if (written === undefined) return
    const { entry, state } = written
    options.signal?.throwIfAborted()
    // Archives are queried again for days that have moved. Repeated rows need no new file.
    if (written.isAsBefore) await dropMergedRows(options.postgres, entry, state)
    else if (options.retireBeforeMs === undefined)
      await commitCompaction(options.postgres, entry, state, publisher(options, partition, temporary))
    else await publish(options, partition, written, temporary)
    const isMoved = written.isAsBefore || options.retireBeforeMs === undefined
    const moved = { path: entry.path, rows: state.rows, fileRows: entry.rows }
    result[isMoved ? 'partitions' : 'published'].push(moved)
    await options.onStep?.('committed', entry.path)
  } finally {
    draft.close()
    await rm(temporary, { force: true })
  }
}

/** Writes and checks the partition's new file, unless the store has no rows for it, or none that the file lacks. */
async function writeDraft(
  options: CompactionOptions,
  partition: Partition,
  closedMs: number,
  { draft, temporary }: { readonly draft: PartitionDraft; readonly temporary: string },
) {
  const { postgres, signal, onStep } = options
  const { table, scope, fromMs, toMs, name, path, registered, published } = partition
  const kept = await keptBeside(path)
  const cold = (await isThere(partition)) ? await draft.loadCold(path, kept) : NO_FILE
  if (registered !== undefined && cold.revision < registered.revision) {
    throw new Error(`${path} is older than the file in the manifest`)
  }
  /** The present file is served up to this instant. */
  const coldToMs = Math.max(registered?.cut_over ?? fromMs, cold.lastMs + 1)
  // The cut-over never goes back, and covers every row of the file: the file may be ahead of the manifest.
  const cutOverMs = Math.min(toMs, Math.max(closedMs, coldToMs))
  const hot = { ...scopeOf(partition), toMs: cutOverMs }
  const state = await compactionState(postgres, hot)
  if (state.rows === 0n) return undefined
  await onStep?.('noted', name)
  for await (const rows of readHotRows(postgres, table, hot, signal)) await draft.addHot(rows)
  await draft.mergeCommon()
  if (kept === undefined && registered?.revision === cold.revision && (await draft.isAsBefore())) {
    // Rows after the cut-over are served from the store, even if the file has them.
    const { rows } = await compactionState(postgres, { ...hot, fromMs: registered.cut_over })
    const entry = { ...registered, dataset: table.dataset, cut_over: cutOverMs }
    // Nothing was written: the file in the manifest has all of the rows.
    if (rows === 0n) return { entry, state, coldToMs, isAsBefore: true }
  }
  const revision = highestOf(cold.revision, registered?.revision, published?.partition.revision)
  const { rows } = await draft.write(temporary, revision + 1n)
  await onStep?.('written', name)
  await draft.verify(temporary, revision + 1n)
  const file = await describeFile(temporary)
  await onStep?.('verified', name)
  const entry: CompactedPartition = {
    dataset: table.dataset,
    scope,
    period_start: fromMs,
    period_end: toMs,
    cut_over: cutOverMs,
    path: name,
    rows,
    size_bytes: file.sizeBytes,
    sha256: file.sha256,
    revision: revision + 1n,
  }
  return { entry, state, coldToMs, isAsBefore: false }
}

const NO_FILE = { lastMs: Number.NEGATIVE_INFINITY, revision: 0n } as const

async function publish(
  options: CompactionOptions,
  partition: Partition,
  { entry, state, coldToMs }: Draft,
  temporary: string,
): Promise<void> {
  const { postgres, clock = SYSTEM_CLOCK } = options
  const publication = { partition: entry, publishedMs: clock.nowMs() }
  const coldTo = Math.min(coldToMs, partition.toMs)
  await commitPublication(postgres, publication, state, coldTo, publisher(options, partition, temporary))
}

/** Returns a function that renames a temporary file to its name. */
function publisher({ onStep }: CompactionOptions, { path, name }: Partition, temporary: string) {
  let isRenamed = false
  return async (): Promise<void> => {
    await onStep?.('registered', name)
    // The transaction may be retried.
    if (!isRenamed) publishPartition(temporary, path)
    isRenamed = true
    await forgetKept(path)
    await syncNames([path])
    await onStep?.('renamed', name)
  }
}

/**
 * Fetches the partition's file if the lake has none, or an earlier one than the manifest or a publication states: another collector
 * has replaced it. While all rows of a published file are in the store, object storage takes precedence. A file stated by neither
 * may be a stale copy's: a later one replaces it, and its rows are merged again. Returns whether a file was fetched.
 */
async function fetchLatest(
  { name: key, path, fromMs, registered, published }: Partition,
  { fetchFile, retireBeforeMs, signal }: CompactionOptions,
): Promise<boolean> {
  if (fetchFile === undefined) return false
  const before = await stat(path).catch(() => undefined)
  const isThereNow = before !== undefined
  const isUnknown = before?.isFile() === true && registered === undefined && published === undefined
  const later = isUnknown ? ((await lakeFileFacts(path))?.revision ?? 0n) + 1n : 0n
  const revision = highestOf(later, registered?.revision, published?.partition.revision)
  const isOnlyPublished = published !== undefined && (registered?.cut_over ?? fromMs) <= fromMs
  if (isThereNow && !isOnlyPublished && !(await isOutdated(path, revision))) return false
  const fetching = (): Promise<void> => fetchFile({ key, revision }, signal)
  await (isUnknown ? keepingFile(path, fetching) : fetching()).catch((error: unknown) => {
    // No row is lost: these rows stay in the store until their file is in object storage.
    const isNew = revision === 0n || (isThereNow && isOnlyPublished)
    if (retireBeforeMs === undefined || !isNew) throw error
  })
  return (await stat(path).catch(() => undefined))?.ino !== before?.ino
}

/** Whether the partition has a file. Throws if the manifest counts on a file that is missing: rows would be lost. */
async function isThere({ path, registered, fromMs }: Partition): Promise<boolean> {
  const isNeeded = registered !== undefined && registered.cut_over > fromMs
  let found: Stats
  try {
    found = await stat(path)
  } catch (error) {
    const isMissing = isErrno(error, 'ENOENT')
    if (isMissing && !isNeeded) return false
    throw new Error(`${path}${isNeeded ? ' is in the manifest but' : ''} cannot be read`, { cause: error })
  }
  // Refuse anything but a regular file: a pipe would block forever, and overwriting it is never intended.
  if (!found.isFile()) throw new Error(`${path} is not a regular file`)
  return true
}

/** Syncs the file, so that a power cut after the rename cannot empty it, and returns its manifest fields. */
async function describeFile(path: string): Promise<{ readonly sizeBytes: bigint; readonly sha256: string }> {
  const file = await open(path, 'r+')
  try {
    await file.sync()
    const { size } = await file.stat()
    return { sizeBytes: BigInt(size), sha256: await digestOf(file, size) }
  } finally {
    await file.close()
  }
}
