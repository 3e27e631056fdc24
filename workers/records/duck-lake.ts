// The DuckDB of one record thread, over the lake's parquet files. It runs in memory, with a limit beyond which it spills to a
// temporary directory, and does not load extensions. Cancelling a request interrupts its query. Values are read column by
// column. The caller chooses the files.

import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type {
  DuckDBConnection,
  DuckDBDataChunk,
  DuckDBInstance,
  DuckDBMaterializedResult,
} from '@duckdb/node-api'
import { DUCKDB_MEMORY_MB_MAX, DUCKDB_TEMP_MB_MAX } from '../../shared/limits.ts'

const DUCKDB_THREADS = 2
/** Idle connections that are kept for later requests. */
const DUCKDB_IDLE_CONNECTIONS_MAX = 4

const SETTINGS = {
  threads: String(DUCKDB_THREADS),
  memory_limit: `${DUCKDB_MEMORY_MB_MAX}MB`,
  max_temp_directory_size: `${DUCKDB_TEMP_MB_MAX}MB`,
  // Trades are read in the order of their files.
  preserve_insertion_order: 'true',
  // The cache identifies a file by size and time in whole seconds, so it could mix a replaced file with the old one.
  enable_external_file_cache: 'false',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

export interface DuckLakeOptions {
  /** Opens the database; tests replace it. */
  readonly open?: () => Promise<DuckDBInstance>
  /** Called after each answer of the database. */
  readonly onAnswer?: () => void
}

// After an internal error, DuckDB refuses all further queries of the database.
const FATAL = /database has been invalidated/i

interface OneQuery {
  readonly connection: DuckDBConnection
  readonly end: (isClean: boolean) => void
}

export class DuckLake {
  readonly #open: () => Promise<DuckDBInstance>
  readonly #onAnswer: () => void
  readonly #idle: DuckDBConnection[] = []
  #instance: Promise<DuckDBInstance> | undefined

  constructor({ open = openDatabase, onAnswer = () => {} }: DuckLakeOptions = {}) {
    this.#open = open
    this.#onAnswer = onAnswer
  }

  /**
   * Streams a result in chunks of up to 2,048 rows. The next chunk is computed while one is used. The query ends with the
   * generator, also if the caller stops early.
   */
  async *chunks(sql: string, signal: AbortSignal): AsyncGenerator<DuckDBDataChunk, void, void> {
    const { connection, end } = await this.#begin(signal)
    let isClean = false
    let next: Promise<DuckDBDataChunk | null> = Promise.resolve(null)
    try {
      signal.throwIfAborted()
      const result = await connection.stream(sql)
      next = result.fetchChunk()
      for (;;) {
        const chunk = await next
        this.#onAnswer()
        signal.throwIfAborted()
        if (chunk === null || chunk.rowCount === 0) break
        next = result.fetchChunk()
        // If the caller stops before this chunk arrives, its failure is ignored.
        next.catch(() => {})
        yield chunk
      }
      isClean = true
    } catch (error) {
      this.#noteFatal(error)
      throw error
    } finally {
      // Do not close a connection while it computes a chunk.
      if (!isClean) {
        connection.interrupt()
        await next.catch(() => {})
      }
      // A connection with an unread result is closed, not reused.
      end(isClean)
    }
  }

  /**
   * The chunks of a result that is small enough to hold in memory. DuckDB computes it at once on all its threads, in half the
   * time of streaming. The connection is free again before the first chunk is read.
   */
  async heldChunks(sql: string, signal: AbortSignal): Promise<Iterable<DuckDBDataChunk>> {
    const { connection, end } = await this.#begin(signal)
    let isClean = false
    try {
      signal.throwIfAborted()
      const result = await connection.run(sql)
      this.#onAnswer()
      signal.throwIfAborted()
      isClean = true
      return chunksOf(result)
    } catch (error) {
      this.#noteFatal(error)
      throw error
    } finally {
      end(isClean)
    }
  }

  /** All rows of a small result, as arrays in column order. */
  async rows(sql: string, signal: AbortSignal): Promise<unknown[][]> {
    return [...(await this.heldChunks(sql, signal))].flatMap((chunk) => chunk.getRows())
  }

  /** Runs a query with a known result. Rejects if the result is different. */
  async probe(): Promise<void> {
    const [row] = await this.rows('SELECT 41 + 1', new AbortController().signal)
    if (row?.[0] !== 42) throw new Error(`DuckDB says that 41 + 1 is ${String(row?.[0])}`)
  }

  /** Takes a connection for one query. Cancelling the request interrupts it; `end` keeps a clean connection or closes it. */
  async #begin(signal: AbortSignal): Promise<OneQuery> {
    const connection = await this.#take()
    const onAbort = (): void => connection.interrupt()
    signal.addEventListener('abort', onAbort)
    const end = (isClean: boolean): void => {
      signal.removeEventListener('abort', onAbort)
      if (isClean && this.#idle.length < DUCKDB_IDLE_CONNECTIONS_MAX) this.#idle.push(connection)
      else connection.closeSync()
    }
    return { connection, end }
  }

  async #take(): Promise<DuckDBConnection> {
    const idle = this.#idle.pop()
    if (idle !== undefined) return idle
    this.#instance ??= this.#open()
    const instance = this.#instance
    try {
      const connection = await (await instance).connect()
      await connection.run("SET TimeZone = 'UTC'")
      return connection
    } catch (error) {
      // The next request tries again.
      if (this.#instance === instance) this.#forget()
      throw error
    }
  }

  /** Drops a database that DuckDB has invalidated. */
  #noteFatal(error: unknown): void {
    if (error instanceof Error && FATAL.test(error.message)) this.#forget()
  }

  /** Drops the database and its idle connections; the next query opens a new one. */
  #forget(): void {
    this.#instance = undefined
    for (const connection of this.#idle.splice(0)) connection.closeSync()
  }
}

function* chunksOf(result: DuckDBMaterializedResult): Generator<DuckDBDataChunk, void, void> {
  for (let index = 0; index < result.chunkCount; index++) yield result.getChunk(index)
}

/** Loading DuckDB is most of a thread's start time. A thread loads it ahead, or at its first read of a lake. */
export function loadDuckDb(): Promise<typeof import('@duckdb/node-api')> {
  return import('@duckdb/node-api')
}

async function openDatabase(): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await loadDuckDb()
  // DuckDB creates the directory when it first spills, and removes it.
  const directory = join(tmpdir(), `bookcast-duckdb-${randomUUID()}`)
  return DuckDBInstance.create(':memory:', { ...SETTINGS, temp_directory: directory })
}

export function sqlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

export function sqlTexts(texts: readonly string[]): string {
  return `[${texts.map(sqlText).join(',')}]::VARCHAR[]`
}

export function sqlInstant(instantMs: number): string {
  return `make_timestamptz(${Math.trunc(instantMs) * 1000})`
}

/** `read_parquet` of some files. Directory names do not become columns. */
export function readParquetSql(paths: readonly string[]): string {
  return `read_parquet([${paths.map(sqlText).join(',')}], hive_partitioning = false)`
}
