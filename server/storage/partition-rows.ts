// The rows of a partition that Postgres holds and compaction moves to the lake: their state, a check that it has not changed, and
// their deletion.

import type { RecordDataset } from '../../shared/lake-layout.ts'
import type { LakePartition } from '../../shared/sql/manifest-queries.ts'
import { instantValue, rawSql, type Sql, type SqlStatement, sql } from '../../shared/sql/statement.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** A statement of the transaction that ends a compaction hashes or deletes a partition's rows. */
const COMPACTION_STATEMENT_MS_MAX = 45_000
/**
 * The transaction of a compaction. Repeatable read: the compared rows are the deleted rows. If a row changes at the same time, the
 * server refuses the transaction, and the retry finds the change.
 */
export const COMPACTION_TRANSACTION = {
  isolation: 'repeatable read',
  statementTimeoutMs: COMPACTION_STATEMENT_MS_MAX,
} as const

/** A partition of such a dataset. */
export type CompactedPartition = LakePartition & { readonly dataset: RecordDataset }

/** The state of a partition's rows in Postgres at one moment. */
export interface CompactionState {
  readonly rows: bigint
  /** Changes with every row and value. */
  readonly digest: string
  /** The partition's generation, or null while it has no file. */
  readonly generation: bigint | null
}

/** Selects the rows of a partition from its start to an instant. Milliseconds since the epoch. */
export interface CompactionScope {
  readonly dataset: RecordDataset
  readonly scope: string
  readonly fromMs: number
  readonly toMs: number
}

/** The rows or the partition have changed since their state was read: read them again. Nothing was written. */
export class PartitionChanged extends Error {
  constructor(partition: LakePartition) {
    super(`${partition.path} is out of date: its rows changed while it was written.`)
    this.name = 'PartitionChanged'
  }
}

/** The columns that identify a row's partition. */
export const PARTITION_COLUMNS = {
  candles: { scope: 'series_ticker', time: 'end_period_ts' },
  observations: { scope: 'station_code', time: 'observed_at' },
} as const

/** The state of a partition's rows in Postgres. Read it before the rows. */
export async function compactionState(postgres: Postgres, scope: CompactionScope): Promise<CompactionState> {
  return stateIn(await postgres.run<CompactionState>(stateStatement(scope)))
}

/**
 * Scopes (series or stations) with rows in Postgres before an instant, which can be compacted. Steps through an index from scope to
 * scope, because reading all rows would exceed the statement timeout.
 */
export function scopesBefore(dataset: RecordDataset, beforeMs: number): SqlStatement {
  const { scope, time } = PARTITION_COLUMNS[dataset]
  const nextScope = (condition: string): string =>
    `SELECT ${scope} FROM ${dataset} ${condition} ORDER BY ${scope} LIMIT 1`
  const firstOf = (condition: string): string =>
    `(SELECT min(${time}) FROM ${dataset} WHERE ${scope} = scopes.scope${condition})`
  // The index of candles has the interval between the series and the time.
  const first =
    dataset === 'candles'
      ? `least(${[1, 60, 1440].map((interval) => firstOf(` AND period_interval = ${interval}`)).join(', ')})`
      : firstOf('')
  const found = rawSql(
    `WITH RECURSIVE scopes(scope) AS ((${nextScope('')}) UNION ALL` +
      ` SELECT (${nextScope(`WHERE ${scope} > scopes.scope`)}) FROM scopes WHERE scopes.scope IS NOT NULL)` +
      ` SELECT scope, first FROM (SELECT scope, ${first} AS first FROM scopes WHERE scope IS NOT NULL) found`,
  )
  return sql`${found} WHERE first < ${instantValue(beforeMs)} ORDER BY scope`
}

export function stateStatement(rows: CompactionScope): SqlStatement {
  const { dataset, scope, fromMs } = rows
  return sql`SELECT count(*)::int8 AS rows,
      count(*) || ':' || coalesce(sum(hashtextextended(r::text, 0)::numeric), 0) AS digest,
      (SELECT generation FROM lake_manifest
        WHERE dataset = ${dataset} AND scope = ${scope} AND period_start = ${instantValue(fromMs)}) AS generation
    ${rowsOf(rows)}`
}

export function scopeOf({ dataset, scope, period_start, cut_over }: CompactedPartition): CompactionScope {
  return { dataset, scope, fromMs: period_start, toMs: cut_over }
}

/** @throws {PartitionChanged} */
export async function checkState(
  transaction: StoreTransaction,
  partition: CompactedPartition,
  expected: CompactionState,
): Promise<void> {
  const found = stateIn(await transaction.run<CompactionState>(stateStatement(scopeOf(partition))))
  if (found.digest !== expected.digest || found.generation !== expected.generation) {
    throw new PartitionChanged(partition)
  }
}

export async function deleteRows(transaction: StoreTransaction, scope: CompactionScope): Promise<void> {
  await transaction.run(sql`DELETE ${rowsOf(scope)}`)
}

/** `FROM … WHERE …`, with `r` as the table's name. */
export function rowsOf({ dataset, scope, fromMs, toMs }: CompactionScope): Sql {
  const [scopeColumn, time] = [PARTITION_COLUMNS[dataset].scope, rawSql(PARTITION_COLUMNS[dataset].time)]
  return sql`FROM ${rawSql(dataset)} r WHERE ${rawSql(scopeColumn)} = ${scope}
    AND ${time} >= ${instantValue(fromMs)} AND ${time} < ${instantValue(toMs)}`
}

export function stateIn(rows: readonly CompactionState[]): CompactionState {
  const [state] = rows
  if (state === undefined) throw new Error('The store did not answer a count.')
  return state
}
