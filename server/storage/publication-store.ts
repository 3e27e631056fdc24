// Compaction when other servers have copies of the lake: a partition's next file is recorded as published while its rows are still
// served from Postgres. The rows are deleted once the copies have had time to fetch the file.

import { instantValue, type Sql, sql } from '../../shared/sql/statement.ts'
import { registerPartition } from './manifest-store.ts'
import {
  checkState,
  type CompactedPartition,
  COMPACTION_TRANSACTION,
  type CompactionScope,
  type CompactionState,
  deleteRows,
  PartitionChanged,
  scopeOf,
  stateIn,
  stateStatement,
} from './partition-rows.ts'
import type { Postgres } from './postgres.ts'

type PublicationRow = CompactedPartition & {
  readonly revision: bigint
  readonly digest: string
  readonly published_at: number
}

// The new version makes servers read the manifest again. The row stays locked until the commit.
const COUNT_VERSION = sql`UPDATE data_versions SET version = version + 1, changed_at = clock_timestamp()
  WHERE dataset = 'lake_manifest'`

/** A file that is in the lake while its rows are still served from Postgres. */
export interface Publication {
  /** The partition's future entry. */
  readonly partition: CompactedPartition
  /** Digest of the rows that are both in the file and in Postgres. */
  readonly digest: string
  /** Milliseconds since the epoch. */
  readonly publishedMs: number
}

/** The publication of a partition that starts at an instant, or undefined. */
export async function readPublication(
  postgres: Postgres,
  partition: Omit<CompactionScope, 'toMs'>,
): Promise<Publication | undefined> {
  const [row] = await postgres.run<PublicationRow>(sql`
    SELECT dataset, scope, period_start, period_end, path, next_cut_over AS cut_over, next_rows AS rows,
      next_size_bytes AS size_bytes, next_sha256 AS sha256, next_revision AS revision, next_digest AS digest, published_at
    FROM lake_manifest ${onePartition(partition)} AND published_at IS NOT NULL`)
  if (row === undefined) return undefined
  const { digest, published_at: publishedMs, ...published } = row
  return { partition: published, digest, publishedMs }
}

/**
 * Records that a partition's next file is in the lake; its rows stay in Postgres and are served from there. Rejects with
 * PartitionChanged if they are no longer those of `expected`. A partition without an entry is registered as cold up to `coldToMs`:
 * rows of an earlier file by an unknown writer are served from that file. `publish` as for commitCompaction.
 */
export async function commitPublication(
  postgres: Postgres,
  { partition, publishedMs }: Omit<Publication, 'digest'>,
  expected: CompactionState,
  coldToMs: number,
  publish: () => Promise<void>,
): Promise<void> {
  await postgres.transaction(async (transaction) => {
    // If two processes have a file for one partition, the second one waits here.
    await transaction.run(COUNT_VERSION)
    await checkState(transaction, partition, expected)
    if (expected.generation === null) {
      await registerPartition(transaction, { ...partition, cut_over: coldToMs, revision: 0n })
    }
    await transaction.run(publicationUpdate(partition, expected.digest, publishedMs))
    await publish()
  }, COMPACTION_TRANSACTION)
}

/**
 * Registers a published file and deletes its rows, or rejects with PartitionChanged if the rows are no longer those of the file or
 * something else was published. Returns the number of deleted rows.
 */
export async function retirePublication(postgres: Postgres, publication: Publication): Promise<bigint> {
  const { partition, digest } = publication
  const scope = scopeOf(partition)
  return postgres.transaction(async (transaction) => {
    const [noted] = await transaction.run<{ readonly digest: string | null; readonly revision: bigint }>(sql`
      SELECT next_digest AS digest, next_revision AS revision FROM lake_manifest ${onePartition(scope)} FOR UPDATE`)
    const found = stateIn(await transaction.run<CompactionState>(stateStatement(scope)))
    if (noted?.digest !== digest || noted.revision !== partition.revision || found.digest !== digest) {
      throw new PartitionChanged(partition)
    }
    await deleteRows(transaction, scope)
    await registerPartition(transaction, partition)
    return found.rows
  }, COMPACTION_TRANSACTION)
}

function publicationUpdate(partition: CompactedPartition, digest: string, publishedMs: number): Sql {
  const { cut_over: coldToMs, rows, size_bytes: sizeBytes, sha256, revision = 0n } = partition
  return sql`UPDATE lake_manifest SET next_cut_over = ${instantValue(coldToMs)}, next_rows = ${rows},
      next_size_bytes = ${sizeBytes}, next_sha256 = ${sha256}, next_revision = ${revision}, next_digest = ${digest},
      published_at = ${instantValue(publishedMs)}
    ${onePartition(scopeOf(partition))}`
}

/** Selects a partition's entry. */
function onePartition({ dataset, scope, fromMs }: Omit<CompactionScope, 'toMs'>): Sql {
  return sql`WHERE dataset = ${dataset} AND scope = ${scope} AND period_start = ${instantValue(fromMs)}`
}
