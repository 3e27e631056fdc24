// The DuckDB instance with which this process writes and reads parquet files. There is one, since creating and closing it takes
// longer than a small query. It ends with the process.

import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'

let instance: Promise<DuckDBInstance> | undefined

/** Runs `use` with a new connection. */
export async function withDuckDb<T>(use: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
  // Tests replace files, so content of a file must not be cached.
  instance ??= DuckDBInstance.create(':memory:', { threads: '1', enable_external_file_cache: 'false' })
  const connection = await (await instance).connect()
  try {
    return await use(connection)
  } finally {
    connection.closeSync()
  }
}
