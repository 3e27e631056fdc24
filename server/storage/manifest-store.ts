// The lake's manifest: which partition's file holds the rows up to which instant. Compaction moves rows from Postgres to
// the lake in three steps: note what is there (`compactionState`), write and verify the file, then register it and
// delete the rows in one transaction, which takes place only when the rows are still those that were noted. A row that
// arrives in between stays, and waits for the next compaction; so nothing is lost or doubled, whenever the process dies.
// Where other servers have copies of the lake the last step is two: the file is noted as published while its rows are
// still served from here, and the rows go (`retirePublication`) when the copies have had time to fetch the file.

import {
  type LakePartition,
  type PartitionSelection,
  partitionsOf,
  type RegisteredPartition,
} from '../../shared/sql/manifest-queries.ts'
import { type SqlStatement, StatementBuilder } from '../../shared/sql/statement.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** A statement of the transaction that ends a compaction may take so long: it hashes or deletes a partition's rows. */
const COMPACTION_STATEMENT_MS_MAX = 45_000

/** The datasets that have rows in Postgres to be moved. */
export type CompactedDataset = 'candles' | 'observations'

/** A partition with rows that can be moved. */
export type CompactedPartition = LakePartition & { readonly dataset: CompactedDataset }

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

type PublicationRow = CompactedPartition & {
  readonly revision: bigint
  readonly digest: string
  readonly published_at: number
}

const LOCK_MANIFEST = "SELECT version FROM data_versions WHERE dataset = 'lake_manifest' FOR UPDATE"

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
    statement.add(partition.revision ?? 0n, 'int8'),
  ]
  // The version's row stays locked until the commit, so generations become visible in their order.
  const [row] = await transaction.run<{ readonly generation: bigint }>(
    statement.build(`
      WITH next AS (
        UPDATE data_versions SET version = version + 1, changed_at = clock_timestamp()
        WHERE dataset = 'lake_manifest' RETURNING version
      )
      INSERT INTO lake_manifest (dataset, scope, period_start, period_end, cut_over, path, rows, size_bytes, sha256,
        revision, generation)
      SELECT ${values.join(', ')}, version FROM next
      ON CONFLICT (dataset, scope, period_start) DO UPDATE
      SET period_end = excluded.period_end, cut_over = excluded.cut_over, path = excluded.path, rows = excluded.rows,
        size_bytes = excluded.size_bytes, sha256 = excluded.sha256, revision = excluded.revision,
        generation = excluded.generation, registered_at = now(), next_cut_over = NULL, next_rows = NULL,
        next_size_bytes = NULL, next_sha256 = NULL, next_revision = NULL, next_digest = NULL, published_at = NULL
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
  partition: CompactedPartition,
  expected: CompactionState,
  publish: () => Promise<void> = async () => {},
): Promise<bigint> {
  // Repeatable read: what is compared is what is deleted. A row changed at the same time makes the server refuse, and
  // the repetition finds it changed.
  return postgres.transaction(
    async (transaction) => {
      await checkState(transaction, partition, expected)
      await deleteRows(transaction, scopeOf(partition))
      const generation = await registerPartition(transaction, partition)
      await publish()
      return generation
    },
    { isolation: 'repeatable read', statementTimeoutMs: COMPACTION_STATEMENT_MS_MAX },
  )
}

/** Deletes rows that the partition's file was found to hold already, or rejects with PartitionChanged. */
export async function dropMergedRows(
  postgres: Postgres,
  partition: CompactedPartition,
  expected: CompactionState,
): Promise<void> {
  await postgres.transaction(
    async (transaction) => {
      await checkState(transaction, partition, expected)
      await deleteRows(transaction, scopeOf(partition))
    },
    { isolation: 'repeatable read', statementTimeoutMs: COMPACTION_STATEMENT_MS_MAX },
  )
}

/** A file that is in the lake while its rows are still served from Postgres. */
export interface Publication {
  /** What the partition is going to be. */
  readonly partition: CompactedPartition
  /** Of the rows that are in the file and still here. */
  readonly digest: string
  /** Milliseconds since the epoch. */
  readonly publishedMs: number
}

/** What is published of a partition that starts at an instant, or undefined. */
export async function readPublication(
  postgres: Postgres,
  partition: Omit<CompactionScope, 'toMs'>,
): Promise<Publication | undefined> {
  const statement = onePartition(new StatementBuilder(), partition)
  const [row] = await postgres.run<PublicationRow>(
    statement.build(
      `SELECT dataset, scope, period_start, period_end, path, next_cut_over AS cut_over, next_rows AS rows,` +
        ` next_size_bytes AS size_bytes, next_sha256 AS sha256, next_revision AS revision, next_digest AS digest,` +
        ` published_at FROM lake_manifest ${statement.whereClause} AND published_at IS NOT NULL`,
    ),
  )
  if (row === undefined) return undefined
  const { digest, published_at: publishedMs, ...published } = row
  return { partition: published, digest, publishedMs }
}

/**
 * Notes that a partition's next file is in the lake; its rows stay, and are what is served. Rejects with
 * PartitionChanged when they are no longer those of `expected`. A partition that was never registered becomes so,
 * cold up to `coldToMs`: what an earlier file of an unknown writer holds is served from it. `publish` as for
 * commitCompaction.
 */
export async function commitPublication(
  postgres: Postgres,
  { partition, publishedMs }: Omit<Publication, 'digest'>,
  expected: CompactionState,
  coldToMs: number,
  publish: () => Promise<void>,
): Promise<void> {
  await postgres.transaction(
    async (transaction) => {
      // Of two processes with a file for one partition the second one waits here.
      await transaction.run({ text: LOCK_MANIFEST, parameters: [] })
      await checkState(transaction, partition, expected)
      if (expected.generation === null) {
        await registerPartition(transaction, { ...partition, cut_over: coldToMs, revision: 0n })
      }
      await transaction.run(publicationUpdate(partition, expected.digest, publishedMs))
      await publish()
    },
    { isolation: 'repeatable read', statementTimeoutMs: COMPACTION_STATEMENT_MS_MAX },
  )
}

/**
 * Registers a published file and deletes its rows, or rejects with PartitionChanged when the rows are no longer those
 * of the file or something else was published. Returns how many rows went.
 */
export async function retirePublication(postgres: Postgres, publication: Publication): Promise<bigint> {
  const { partition, digest } = publication
  const scope = scopeOf(partition)
  return postgres.transaction(
    async (transaction) => {
      const [noted] = await transaction.run<{ readonly digest: string | null; readonly revision: bigint }>(
        notedPublication(scope),
      )
      const found = stateIn(await transaction.run<CompactionState>(stateStatement(scope)))
      if (noted?.digest !== digest || noted.revision !== partition.revision || found.digest !== digest) {
        throw new PartitionChanged(partition)
      }
      await deleteRows(transaction, scope)
      await registerPartition(transaction, partition)
      return found.rows
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

function scopeOf({ dataset, scope, period_start, cut_over }: CompactedPartition): CompactionScope {
  return { dataset, scope, fromMs: period_start, toMs: cut_over }
}

/** @throws {PartitionChanged} */
async function checkState(
  transaction: StoreTransaction,
  partition: CompactedPartition,
  expected: CompactionState,
): Promise<void> {
  const found = stateIn(await transaction.run<CompactionState>(stateStatement(scopeOf(partition))))
  if (found.digest !== expected.digest || found.generation !== expected.generation) {
    throw new PartitionChanged(partition)
  }
}

async function deleteRows(transaction: StoreTransaction, scope: CompactionScope): Promise<void> {
  const { scope: scopeColumn, time } = TABLES[scope.dataset]
  const statement = selectedRows(scope, scopeColumn, time)
  await transaction.run(statement.build(`DELETE FROM ${scope.dataset} ${statement.whereClause}`))
}

function publicationUpdate(partition: CompactedPartition, digest: string, publishedMs: number): SqlStatement {
  const statement = new StatementBuilder()
  const values = {
    next_cut_over: statement.addInstant(partition.cut_over),
    next_rows: statement.add(partition.rows, 'int8'),
    next_size_bytes: statement.add(partition.size_bytes, 'int8'),
    next_sha256: statement.add(partition.sha256, 'text'),
    next_revision: statement.add(partition.revision ?? 0n, 'int8'),
    next_digest: statement.add(digest, 'text'),
    published_at: statement.addInstant(publishedMs),
  }
  const list = Object.entries(values).map(([name, value]) => `${name} = ${value}`)
  onePartition(statement, scopeOf(partition))
  return statement.build(`UPDATE lake_manifest SET ${list.join(', ')} ${statement.whereClause}`)
}

function notedPublication(scope: CompactionScope): SqlStatement {
  const statement = onePartition(new StatementBuilder(), scope)
  return statement.build(
    `SELECT next_digest AS digest, next_revision AS revision FROM lake_manifest ${statement.whereClause} FOR UPDATE`,
  )
}

/** Adds the conditions of a partition's entry. */
function onePartition(
  statement: StatementBuilder,
  { dataset, scope, fromMs }: Omit<CompactionScope, 'toMs'>,
): StatementBuilder {
  statement.where(`dataset = ${statement.add(dataset, 'text')}`)
  statement.where(`scope = ${statement.add(scope, 'text')}`)
  return statement.where(`period_start = ${statement.addInstant(fromMs)}`)
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
