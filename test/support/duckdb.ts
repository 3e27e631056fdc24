// The DuckDB with which this process writes and reads parquet files: one, since making and ending it takes longer than a
// small query. It ends with the process.

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'

let instance: Promise<DuckDBInstance> | undefined

/** Runs `use` on a connection of its own. */
export async function withDuckDb<T>(use: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  // Files are replaced in tests: what was read of one must not be remembered.
  instance ??= DuckDBInstance.create(':memory:', { threads: '1', enable_external_file_cache: 'false' })
  const connection = await (await instance).connect()
  try {
    return await use(connection)
  } finally {
    connection.closeSync()
  }
}
