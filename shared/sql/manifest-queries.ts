// The lake manifest: which partitions the lake has, and up to which instant. Every read of both lake and store is planned by it.
// Compaction may move rows between two statements of a long read; `generation` detects this.

import { instantValue, listValue, rawSql, type Sql, type SqlStatement, sql, whereAll } from './statement.ts'

type LakeDataset = 'candles' | 'observations' | 'lob'

/** A partition: its file has the rows of [period_start, cut_over), the store those of [cut_over, period_end). */
export interface LakePartition {
  readonly dataset: LakeDataset
  /** The series or station. */
  readonly scope: string
  /** Milliseconds since the epoch, like the next two. */
  readonly period_start: number
  readonly period_end: number
  readonly cut_over: number
  /** Below the lake's root, with forward slashes. */
  readonly path: string
  readonly rows: bigint
  readonly size_bytes: bigint
  /** Lower-case hexadecimal. */
  readonly sha256: string
  /** Numbers the successive files of the partition; the file states it too. Default: 0, for a file without a revision. */
  readonly revision?: bigint
}

/** A registered partition. `generation` increases with every registration in its dataset. */
export interface RegisteredPartition extends LakePartition {
  readonly revision: bigint
  readonly generation: bigint
}

/** Partitions that overlap [fromMs, toMs). Null is no condition. */
export interface PartitionSelection {
  readonly dataset: LakeDataset
  readonly scopes: readonly string[] | null
  readonly fromMs: number
  readonly toMs: number
}

const COLUMNS = rawSql(
  'dataset, scope, period_start, period_end, cut_over, path, rows, size_bytes, sha256, revision, generation',
)

/** Rows of RegisteredPartition by (period_start, scope). */
export function partitionsOf(selection: PartitionSelection): SqlStatement {
  return sql`SELECT ${COLUMNS} FROM lake_manifest ${selected(selection)} ORDER BY period_start, scope`
}

/** A row with the newest generation of its dataset's partitions, read in the same statement; 0 without any. */
export interface WithGeneration {
  readonly generation: bigint
}

/** The column of WithGeneration. */
export function generationColumn(dataset: 'candles' | 'observations'): Sql {
  return rawSql(
    `(SELECT coalesce(max(generation), 0)::int8 FROM lake_manifest WHERE dataset = '${dataset}') AS generation`,
  )
}

/** The generation of a plan made of these partitions. */
export function generationOf(partitions: readonly RegisteredPartition[]): bigint {
  let newest = 0n
  for (const { generation } of partitions) if (generation > newest) newest = generation
  return newest
}

/** Thrown if rows moved to the lake during a read: the rest of the read must be planned again. */
export class ManifestChanged extends Error {
  constructor(dataset: LakeDataset) {
    super(`The lake's partitions of ${dataset} changed during a read.`)
    this.name = 'ManifestChanged'
  }
}

function selected({ dataset, scopes, fromMs, toMs }: PartitionSelection): Sql {
  return whereAll(
    sql`dataset = ${dataset}`,
    scopes !== null && sql`scope = ANY (${listValue(scopes)})`,
    sql`period_start < ${instantValue(toMs)} AND period_end > ${instantValue(fromMs)}`,
  )
}
