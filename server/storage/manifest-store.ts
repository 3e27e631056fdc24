// The lake's manifest: which partition's file holds the rows up to which instant. Compaction moves rows from Postgres to
// the lake in three steps: note what is there (`compactionState`), write and verify the file, then register it and
// delete the rows in one transaction, which takes place only when the rows are still those that were noted. A row that
// arrives in between stays, and waits for the next compaction; so nothing is lost or doubled, whenever the process dies.

import { COMPACTION_STATEMENT_MS_MAX } from '../../shared/limits.ts'
import {
  type LakePartition,
  type PartitionSelection,
  partitionsOf,
  type RegisteredPartition,
} from '../../shared/sql/manifest-queries.ts'
import { type SqlStatement, StatementBuilder } from '../../shared/sql/statement.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** The datasets that have rows in Postgres to be moved. */
export type CompactedDataset = 'candles' | 'observations'

/** What Postgres held of a partition at one moment. */
export interface CompactionState {
  readonly rows: bigint
  /** Changes with every row and value. */
  readonly digest: string
  /** The partition's generation, or null while it has no file. */
  readonly generation: bigint | null
}

/** Which rows: those of a partition from its start to an instant. Milliseconds since the epoch. */
export interface CompactionScope {
  readonly dataset: CompactedDataset
  readonly scope: string
  readonly fromMs: number
  readonly toMs: number
}

/** The rows or the partition changed since they were noted: read them again. Nothing was done. */
export class PartitionChanged extends Error {
  constructor(partition: LakePartition) {
    super(`${partition.path} is out of date: its rows changed while it was written.`)
    this.name = 'PartitionChanged'
  }
}

const TABLES = {
  candles: { scope: 'series_ticker', time: 'end_period_ts' },
  observations: { scope: 'station_code', time: 'observed_at' },
} as const

/** Partitions that overlap a range, by (period_start, scope). */
export function readPartitions(
  postgres: Postgres,
  selection: PartitionSelection,
): Promise<readonly RegisteredPartition[]> {
  return postgres.run<RegisteredPartition>(partitionsOf(selection))
}

/**
 * Registers a partition's file or its replacement, for example after an import; rows in Postgres are left alone.
 * Returns the partition's generation.
 */
export async function registerPartition(
  transaction: StoreTransaction,
  partition: LakePartition,
): Promise<bigint> {
  const statement = new StatementBuilder()
  const values = [
    statement.add(partition.dataset, 'text'),
    statement.add(partition.scope, 'text'),
    statement.addInstant(partition.period_start),
    statement.addInstant(partition.period_end),
    statement.addInstant(partition.cut_over),
    statement.add(partition.path, 'text'),
    statement.add(partition.rows, 'int8'),
    statement.add(partition.size_bytes, 'int8'),
    statement.add(partition.sha256, 'text'),
  ]
  // The version's row stays locked until the commit, so generations become visible in their order.
  const [row] = await transaction.run<{ readonly generation: bigint }>(
    statement.build(`
      WITH next AS (
        UPDATE data_versions SET version = version + 1, changed_at = clock_timestamp()
        WHERE dataset = 'lake_manifest' RETURNING version
      )
      INSERT INTO lake_manifest (dataset, scope, period_start, period_end, cut_over, path, rows, size_bytes, sha256,
        generation)
      SELECT ${values.join(', ')}, version FROM next
      ON CONFLICT (dataset, scope, period_start) DO UPDATE
      SET period_end = excluded.period_end, cut_over = excluded.cut_over, path = excluded.path, rows = excluded.rows,
        size_bytes = excluded.size_bytes, sha256 = excluded.sha256, generation = excluded.generation,
        registered_at = now()
      RETURNING generation`),
  )
  if (row === undefined) throw new Error('The manifest has no version.')
  return row.generation
}

/** What Postgres holds of a partition now. Take it before reading the rows. */
export async function compactionState(postgres: Postgres, scope: CompactionScope): Promise<CompactionState> {
  return stateIn(await postgres.run<CompactionState>(stateStatement(scope)))
}

/**
 * Registers the file that holds the rows of `expected` and deletes them, or rejects with PartitionChanged. Returns the
 * partition's generation. `publish` gives the file its name; it runs last in the transaction, where the manifest is
 * locked, so that of two processes that compact one partition only the one that commits puts its file in place.
 */
export async function commitCompaction(
  postgres: Postgres,
  partition: LakePartition & { readonly dataset: CompactedDataset },
  expected: CompactionState,
  publish: () => Promise<void> = async () => {},
): Promise<bigint> {
  const scope: CompactionScope = {
    dataset: partition.dataset,
    scope: partition.scope,
    fromMs: partition.period_start,
    toMs: partition.cut_over,
  }
  // Repeatable read: what is compared is what is deleted. A row changed at the same time makes the server refuse, and
  // the repetition finds it changed.
  return postgres.transaction(
    async (transaction) => {
      const found = stateIn(await transaction.run<CompactionState>(stateStatement(scope)))
      if (found.digest !== expected.digest || found.generation !== expected.generation) {
        throw new PartitionChanged(partition)
      }
      const { scope: scopeColumn, time } = TABLES[scope.dataset]
      const statement = selectedRows(scope, scopeColumn, time)
      await transaction.run(statement.build(`DELETE FROM ${scope.dataset} ${statement.whereClause}`))
      const generation = await registerPartition(transaction, partition)
      await publish()
      return generation
    },
    { isolation: 'repeatable read', statementTimeoutMs: COMPACTION_STATEMENT_MS_MAX },
  )
}

/** Partitions (scope and period start) that have rows in Postgres older than their cut-over: late arrivals. */
export function readLatePartitions(
  postgres: Postgres,
  dataset: CompactedDataset,
): Promise<readonly Pick<RegisteredPartition, 'scope' | 'period_start'>[]> {
  const { scope, time } = TABLES[dataset]
  return postgres.run({
    text: `
      SELECT p.scope, p.period_start FROM lake_manifest p
      WHERE p.dataset = $1::text AND EXISTS (SELECT FROM ${dataset} r
        WHERE r.${scope} = p.scope AND r.${time} >= p.period_start AND r.${time} < p.cut_over)
      ORDER BY p.period_start, p.scope`,
    parameters: [dataset],
  })
}

/** Scopes (series or stations) with rows in Postgres before an instant: what there is to compact. */
export async function readScopesBefore(
  postgres: Postgres,
  dataset: CompactedDataset,
  beforeMs: number,
): Promise<readonly { readonly scope: string; readonly first: number }[]> {
  const { scope, time } = TABLES[dataset]
  const statement = new StatementBuilder()
  return postgres.run(
    statement.build(
      `SELECT ${scope} AS scope, min(${time}) AS first FROM ${dataset}` +
        ` WHERE ${time} < ${statement.addInstant(beforeMs)} GROUP BY ${scope} ORDER BY ${scope}`,
    ),
  )
}

function stateStatement(scope: CompactionScope): SqlStatement {
  const { scope: scopeColumn, time } = TABLES[scope.dataset]
  const statement = selectedRows(scope, scopeColumn, time)
  const partition =
    `dataset = ${statement.add(scope.dataset, 'text')} AND scope = ${statement.add(scope.scope, 'text')}` +
    ` AND period_start = ${statement.addInstant(scope.fromMs)}`
  return statement.build(
    `SELECT count(*)::int8 AS rows, count(*) || ':' || coalesce(sum(hashtextextended(r::text, 0)::numeric), 0) AS digest,` +
      ` (SELECT generation FROM lake_manifest WHERE ${partition}) AS generation` +
      ` FROM ${scope.dataset} r ${statement.whereClause}`,
  )
}

function selectedRows(scope: CompactionScope, scopeColumn: string, time: string): StatementBuilder {
  const statement = new StatementBuilder()
  statement.where(`${scopeColumn} = ${statement.add(scope.scope, 'text')}`)
  statement.where(`${time} >= ${statement.addInstant(scope.fromMs)}`)
  return statement.where(`${time} < ${statement.addInstant(scope.toMs)}`)
}

function stateIn(rows: readonly CompactionState[]): CompactionState {
  const [state] = rows
  if (state === undefined) throw new Error('The store did not answer a count.')
  return state
}
