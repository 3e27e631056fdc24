// One thread's DuckDB over the lake's parquet files: in memory, on one thread, with a bound on memory beyond which it
// spills to a temporary directory. It may neither load extensions nor write. A query is stopped when its request is
// cancelled. Values come out column by column; which files are read is the caller's business.

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
/** Connections to its DuckDB that a thread keeps for the next request. */
const DUCKDB_IDLE_CONNECTIONS_MAX = 4

const SETTINGS = {
  threads: String(DUCKDB_THREADS),
  memory_limit: `${DUCKDB_MEMORY_MB_MAX}MB`,
  max_temp_directory_size: `${DUCKDB_TEMP_MB_MAX}MB`,
  // Trades are read in the order of their files.
  preserve_insertion_order: 'true',
  // It tells a replaced file from the old one by size and whole seconds, so it could mix the two.
  enable_external_file_cache: 'false',
  autoinstall_known_extensions: 'false',
  autoload_known_extensions: 'false',
}

export interface DuckLakeOptions {
  /** Makes the database; another one than the real one for tests. */
  readonly open?: () => Promise<DuckDBInstance>
  /** Called whenever the database has answered. */
  readonly onAnswer?: () => void
}

// After an internal error DuckDB refuses everything else that this database is asked.
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
   * Chunks of up to 2,048 rows, of which the next is made while one is used. The query is over when the generator is,
   * however that happens.
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
        // Whoever gave up before it came hears nothing of its failure.
        next.catch(() => {})
        yield chunk
      }
      isClean = true
    } catch (error) {
      this.#noteFatal(error)
      throw error
    } finally {
      // A connection is not closed under a chunk that is being made.
      if (!isClean) {
        connection.interrupt()
        await next.catch(() => {})
      }
      // A result that was not read to its end stays with its connection.
      end(isClean)
    }
  }

  /**
   * The chunks of a result that is small enough to be held: it is made at once, on all threads, in half the time that
   * chunk after chunk takes. The connection is free again before the first is read.
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

  /** Asks a question whose answer is known. Rejects when it is not given. */
  async probe(): Promise<void> {
    const [row] = await this.rows('SELECT 41 + 1', new AbortController().signal)
    if (row?.[0] !== 42) throw new Error(`DuckDB says that 41 + 1 is ${String(row?.[0])}`)
  }

  /** A connection for one query, which is interrupted when the request is cancelled. `end` gives it back, if it is clean. */
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

  /** A database that is invalid answers nothing any more. */
  #noteFatal(error: unknown): void {
    if (error instanceof Error && FATAL.test(error.message)) this.#forget()
  }

  /** What is asked next is asked of a new database. */
  #forget(): void {
    this.#instance = undefined
    for (const connection of this.#idle.splice(0)) connection.closeSync()
  }
}

function* chunksOf(result: DuckDBMaterializedResult): Generator<DuckDBDataChunk, void, void> {
  for (let index = 0; index < result.chunkCount; index++) yield result.getChunk(index)
}

/** DuckDB's library takes most of a thread's start: a thread loads it ahead, or with what it first reads of a lake. */
export function loadDuckDb(): Promise<typeof import('@duckdb/node-api')> {
  return import('@duckdb/node-api')
}

async function openDatabase(): Promise<DuckDBInstance> {
  const { DuckDBInstance } = await loadDuckDb()
  // DuckDB makes the directory when it first spills, and removes it.
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

/** `read_parquet` of some files, by path alone: what directories are called says nothing about columns. */
export function readParquetSql(paths: readonly string[]): string {
  return `read_parquet([${paths.map(sqlText).join(',')}], hive_partitioning = false)`
}
