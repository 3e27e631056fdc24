// The lake's manifest: which file holds the rows of a partition, and up to which instant. Compaction moves rows from Postgres to
// the lake in three steps: record the state of the rows (`compactionState`), write and verify the file, then register it and delete
// the rows in one transaction. The transaction fails if the rows have changed since the first step. A row that arrives in between
// stays until the next compaction. So no row is lost or doubled, whenever the process dies. If other servers have copies of the
// lake, the last step is split in two (publication-store.ts).

import type { RecordDataset } from '../../shared/lake-layout.ts'
import {
  type LakePartition,
  type PartitionSelection,
  partitionsOf,
  type RegisteredPartition,
} from '../../shared/sql/manifest-queries.ts'
import { instantValue, rawSql, sql } from '../../shared/sql/statement.ts'
import {
  checkState,
  type CompactedPartition,
  COMPACTION_TRANSACTION,
  type CompactionState,
  deleteRows,
  scopeOf,
  PARTITION_COLUMNS,
} from './partition-rows.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** Partitions that overlap a range, by (period_start, scope). */
export function readPartitions(
  postgres: Postgres,
  selection: PartitionSelection,
): Promise<readonly RegisteredPartition[]> {
  return postgres.run<RegisteredPartition>(partitionsOf(selection))
}

/**
 * Registers a partition's file or its replacement, for example after an import; rows in Postgres stay. Returns the partition's
 * generation.
 */
export async function registerPartition(
  transaction: StoreTransaction,
  partition: LakePartition,
): Promise<bigint> {
  const instants = [partition.period_start, partition.period_end, partition.cut_over]
  const [start, end, cut] = instants.map(instantValue)
  // The version's row stays locked until the commit, so generations become visible in order.
  const [row] = await transaction.run<{ readonly generation: bigint }>(sql`
    WITH next AS (
      UPDATE data_versions SET version = version + 1, changed_at = clock_timestamp()
      WHERE dataset = 'lake_manifest' RETURNING version
    )
    INSERT INTO lake_manifest (dataset, scope, period_start, period_end, cut_over, path, rows, size_bytes, sha256,
      revision, generation)
    SELECT ${partition.dataset}, ${partition.scope}, ${start!}, ${end!}, ${cut!}, ${partition.path}, ${partition.rows},
      ${partition.size_bytes}, ${partition.sha256}, ${partition.revision ?? 0n}, version FROM next
    ON CONFLICT (dataset, scope, period_start) DO UPDATE
    SET period_end = excluded.period_end, cut_over = excluded.cut_over, path = excluded.path, rows = excluded.rows,
      size_bytes = excluded.size_bytes, sha256 = excluded.sha256, revision = excluded.revision,
      generation = excluded.generation, registered_at = now(), next_cut_over = NULL, next_rows = NULL,
      next_size_bytes = NULL, next_sha256 = NULL, next_revision = NULL, next_digest = NULL, published_at = NULL
    RETURNING generation`)
  if (row === undefined) throw new Error('The manifest has no version.')
  return row.generation
}

/**
 * Registers the file that holds the rows of `expected` and deletes them, or rejects with PartitionChanged. Returns the partition's
 * generation. `publish` gives the file its name. It runs last in the transaction, while the manifest is locked: if two processes
 * compact one partition, only the one that commits puts its file in place.
 */
export async function commitCompaction(
  postgres: Postgres,
  partition: CompactedPartition,
  expected: CompactionState,
  publish: () => Promise<void> = async () => {},
): Promise<bigint> {
  return postgres.transaction(async (transaction) => {
    await checkState(transaction, partition, expected)
    await deleteRows(transaction, scopeOf(partition))
    const generation = await registerPartition(transaction, partition)
    await publish()
    return generation
  }, COMPACTION_TRANSACTION)
}

/** Deletes rows that the partition's file already holds, or rejects with PartitionChanged. */
export async function dropMergedRows(
  postgres: Postgres,
  partition: CompactedPartition,
  expected: CompactionState,
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    await checkState(transaction, partition, expected)
    await deleteRows(transaction, scopeOf(partition))
  }, COMPACTION_TRANSACTION)
}

/** Partitions (scope and period start) that have rows in Postgres older than their cut-over: late arrivals. */
export function readLatePartitions(
  postgres: Postgres,
  dataset: RecordDataset,
): Promise<readonly Pick<RegisteredPartition, 'scope' | 'period_start'>[]> {
  const { scope, time } = PARTITION_COLUMNS[dataset]
  // The index of candles has the interval between the series and the time.
  const indexed = dataset === 'candles' ? 'r.period_interval IN (1, 60, 1440) AND ' : ''
  const rows = rawSql(
    `FROM ${dataset} r WHERE ${indexed}r.${scope} = p.scope AND r.${time} >= p.period_start AND r.${time} < p.cut_over`,
  )
  return postgres.run(sql`
    SELECT p.scope, p.period_start FROM lake_manifest p WHERE p.dataset = ${dataset} AND EXISTS (SELECT ${rows})
    ORDER BY p.period_start, p.scope`)
}
