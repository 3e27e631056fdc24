// One interface to three independent parquet readers; a file is valid only if all of them agree.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { tableFromIPC } from 'apache-arrow'
import { parquetReadObjects } from 'hyparquet'
import { readParquet } from 'parquet-wasm'
import { withDuckDb } from './duckdb.ts'

/** The rows of a file as JSON texts: columns in file order, 64-bit integers as strings. */
export type ParquetReader = (file: Uint8Array) => Promise<string[]>

export const PARQUET_READERS: Readonly<Record<string, ParquetReader>> = {
  hyparquet: readWithHyparquet,
  'parquet-wasm': readWithParquetWasm,
  DuckDB: (file) => queryWithDuckDb(file, 'SELECT * FROM file'),
}

/** A row in the readers' common form. */
export function rowText(row: object): string {
  return JSON.stringify(row, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
}

async function readWithHyparquet(file: Uint8Array): Promise<string[]> {
  const rows = await parquetReadObjects({ file: arrayBufferOf(file) })
  return rows.map(rowText)
}

/** The file's bytes in an ArrayBuffer of their own. */
export function arrayBufferOf(file: Uint8Array): ArrayBuffer {
  return new Uint8Array(file).buffer
}

async function readWithParquetWasm(file: Uint8Array): Promise<string[]> {
  const table = tableFromIPC(readParquet(file).intoIPCStream())
  return table.toArray().map((row: { toJSON(): Record<string, unknown> }) => rowText(plain(row.toJSON())))
}

/** Arrow's vectors and struct proxies as arrays and objects. */
function plain(row: Record<string, unknown>): object {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      isIterable(value) ? Array.from(value, levelOf) : value,
    ]),
  )
}

function isIterable(value: unknown): value is Iterable<{ price: number; qty: bigint }> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value
}

function levelOf({ price, qty }: { price: number; qty: bigint }): object {
  return { price, qty }
}

/** The result of a query over the view `file`, in the same form. */
export async function queryWithDuckDb(file: Uint8Array, sql: string): Promise<string[]> {
  const directory = await mkdtemp(join(tmpdir(), 'bookcast-parquet-'))
  try {
    const path = join(directory, 'file.parquet')
    await writeFile(path, file)
    return await withDuckDb(async (connection) => {
      await connection.run(`CREATE TEMPORARY VIEW file AS SELECT * FROM read_parquet('${path}')`)
      const result = await connection.runAndReadAll(sql)
      return result.getRowObjectsJS().map(rowText)
    })
  } finally {
    await rm(directory, { recursive: true })
  }
}
