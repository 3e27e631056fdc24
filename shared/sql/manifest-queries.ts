// What the lake holds and up to where: the plan of every read that may touch both stores, and the check that the plan
// still holds. Compaction moves rows between two statements of a long read; `generation` tells.

import {
  instantValue,
  listValue,
  rawSql,
  type RunStatement,
  type Sql,
  type SqlStatement,
  sql,
  whereAll,
} from './statement.ts'

type LakeDataset = 'candles' | 'observations' | 'lob'

/** A partition: its file holds the rows of [period_start, cut_over), Postgres those of [cut_over, period_end). */
export interface LakePartition {
  readonly dataset: LakeDataset
  /** The series or station. */
  readonly scope: string
  /** Milliseconds since the epoch, as are the next two. */
  readonly period_start: number
  readonly period_end: number
  readonly cut_over: number
  /** Below the lake's root, with forward slashes. */
  readonly path: string
  readonly rows: bigint
  readonly size_bytes: bigint
  /** Lower-case hexadecimal. */
  readonly sha256: string
  /** Counts the partition's files; the file states it too. 0 (the default) where it does not. */
  readonly revision?: bigint
}

/** A registered partition. `generation` rises with every registration in its dataset. */
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

/** One row with `generation`: the newest of the partitions selected, 0 when there is none. */
function newestGeneration(selection: PartitionSelection): SqlStatement {
  return sql`SELECT coalesce(max(generation), 0)::int8 AS generation FROM lake_manifest ${selected(selection)}`
}

/** A row read together with the newest generation of its dataset's partitions at that very moment. */
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

/** A checkpoint for `keysetPages`: throws ManifestChanged once a partition of the selection was registered anew. */
export function manifestCheckpoint(
  run: RunStatement,
  selection: PartitionSelection,
  plannedGeneration: bigint,
): () => Promise<void> {
  return async () => {
    const [newest] = await run<{ readonly generation: bigint }>(newestGeneration(selection))
    if (newest?.generation !== plannedGeneration) throw new ManifestChanged(selection)
  }
}

/** Rows moved to the lake while a read was under way: what follows must be planned anew. */
export class ManifestChanged extends Error {
  constructor(selection: PartitionSelection) {
    super(`The lake's partitions of ${selection.dataset} changed during a read.`)
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
