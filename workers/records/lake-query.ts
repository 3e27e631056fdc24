// Runs DuckDB queries over lake files so that a failure names the file at fault, and checks that a file has the columns of its
// contract. A file is checked at its first use, and again after it was replaced.

import { messageOf } from '../../shared/error-message.ts'
import { ApiError } from '../../shared/errors.ts'
import type { DuckDBDataChunk } from '@duckdb/node-api'
import { lakeFileError } from '../lake/lake-file-error.ts'
import { answered } from '../lake/watched-files.ts'
import { type DuckLake, readParquetSql, sqlText } from './duck-lake.ts'
import { checkUnchanged, type LakePart } from './lake-partitions.ts'

/** Column names and the DuckDB types they may have. */
export interface LakeFileSchema {
  readonly schema: string
  readonly columns: Readonly<Record<string, readonly string[]>>
}

/** The first line of a DuckDB message, without the path. */
function reasonOf(error: unknown, path: string): string {
  const text = messageOf(error)
  return (text.split('\n')[0] ?? '').replaceAll(path, 'the file').replace(/\.$/, '')
}

export async function* lakeChunks(
  lake: DuckLake,
  parts: readonly LakePart[],
  sql: string,
  signal: AbortSignal,
): AsyncGenerator<DuckDBDataChunk, void, void> {
  const chunks = lake.chunks(sql, signal)
  try {
    for (;;) {
      const next = await answered(parts, chunks.next())
      if (next.done === true) return
      yield next.value
    }
  } catch (error) {
    throw await faultOf(lake, parts, error, signal)
  } finally {
    await chunks.return()
  }
}

/** The chunks of a query over some files whose result is small enough to hold in memory. */
export async function heldLakeChunks(
  lake: DuckLake,
  parts: readonly LakePart[],
  sql: string,
  signal: AbortSignal,
): Promise<Iterable<DuckDBDataChunk>> {
  try {
    return await answered(parts, lake.heldChunks(sql, signal))
  } catch (error) {
    throw await faultOf(lake, parts, error, signal)
  }
}

/** All rows of a small result over some files, as arrays in column order. */
export async function lakeRows(
  lake: DuckLake,
  parts: readonly LakePart[],
  sql: string,
  signal: AbortSignal,
): Promise<unknown[][]> {
  return [...(await heldLakeChunks(lake, parts, sql, signal))].flatMap((chunk) => chunk.getRows())
}

/**
 * Checks a file and resolves to the revision it states, 0 when it states none.
 * @throws {ApiError} `lake_file_invalid` when columns are missing or have another type, or the footer's schema differs
 */
export async function checkLakeFile(
  lake: DuckLake,
  part: LakePart,
  contract: LakeFileSchema,
  signal: AbortSignal,
): Promise<bigint> {
  await checkColumns(lake, part, contract, signal)
  return statedRevision(part, contract, await statedPairs(lake, part, ['schema', 'revision'], signal))
}

/** @throws {ApiError} `lake_file_invalid` when columns are missing or have another type */
export async function checkColumns(
  lake: DuckLake,
  part: LakePart,
  contract: LakeFileSchema,
  signal: AbortSignal,
): Promise<void> {
  const described = await lakeRows(
    lake,
    [part],
    `DESCRIBE SELECT * FROM ${readParquetSql([part.path])}`,
    signal,
  )
  const types = new Map(described.map(([name, type]) => [String(name), String(type)]))
  for (const [name, accepted] of Object.entries(contract.columns)) {
    const type = types.get(name)
    if (type === undefined) throw lakeFileError(part.name, `it has no column ${name}`)
    if (!accepted.includes(type))
      throw lakeFileError(part.name, `its column ${name} is ${type}, not ${accepted.join(' or ')}`)
  }
}

/**
 * The revision that a file states, 0 when it states none.
 * @throws {ApiError} `lake_file_invalid` when the footer's schema differs or the revision is no number
 */
export function statedRevision(
  part: LakePart,
  contract: LakeFileSchema,
  stated: ReadonlyMap<string, string>,
): bigint {
  const schema = stated.get('schema') ?? contract.schema
  if (schema !== contract.schema) {
    throw lakeFileError(part.name, `its schema is ${schema}, not ${contract.schema}`)
  }
  const revision = stated.get('revision') ?? '0'
  if (!/^\d{1,18}$/.test(revision)) throw lakeFileError(part.name, 'its revision is no number')
  return BigInt(revision)
}

/** The key-values of the footer. A file whose values are not UTF-8 is refused, although its rows may be readable. */
export async function statedPairs(
  lake: DuckLake,
  part: LakePart,
  keys: readonly string[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  // Keys of other writers may have any bytes, so keys are compared as bytes.
  const sql =
    `SELECT decode(key), decode(value) FROM parquet_kv_metadata(${sqlText(part.path)})` +
    ` WHERE key IN (${keys.map((key) => `encode(${sqlText(key)})`).join(', ')})`
  try {
    const pairs = await lakeRows(lake, [part], sql, signal)
    return new Map(pairs.map(([key, value]) => [String(key), String(value)]))
  } catch (error) {
    if (signal.aborted || error instanceof ApiError) throw error
    throw lakeFileError(part.name, reasonOf(error, part.path), error)
  }
}

/**
 * Finds the file that made a query fail: a replaced one, since DuckDB opens a file again for its rows and applies the offsets of
 * the old footer; or the one that the message names; or else the first that cannot be read on its own.
 */
async function faultOf(
  lake: DuckLake,
  parts: readonly LakePart[],
  error: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  if (signal.aborted || error instanceof ApiError) return error
  try {
    checkUnchanged(parts)
  } catch (changed) {
    return changed
  }
  const text = messageOf(error)
  const named = parts.find(({ path }) => text.includes(path))
  if (named !== undefined) return lakeFileError(named.name, reasonOf(error, named.path), error)
  for (const part of parts) {
    try {
      // A hash of whole rows makes DuckDB read every page.
      const sql = `SELECT bit_xor(hash(row_of_file)) FROM ${readParquetSql([part.path])} AS row_of_file`
      await lake.rows(sql, signal)
    } catch (cause) {
      if (signal.aborted) return error
      return lakeFileError(part.name, reasonOf(cause, part.path), cause)
    }
  }
  return error
}
