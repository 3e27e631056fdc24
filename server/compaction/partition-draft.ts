// A partition's next file under construction: the rows of the present file, and on top of them those of the relational store.
// DuckDB in memory sorts them and writes the file, because it handles schemas, nulls and zstd. Then the file is read back and
// compared with the merged rows, value by value.

import {
  type DuckDBAppender,
  type DuckDBConnection,
  DuckDBInstance,
  DuckDBTimestampTZValue,
} from '@duckdb/node-api'
import { COMPACTION_MEMORY } from '../../shared/limits.ts'
import {
  RECORD_CHECKSUM_KEY,
  RECORD_CHECKSUM_PLACEHOLDER,
  writeRecordFileChecksum,
} from '../../shared/record-file-checksum.ts'
import { PARTITION_COLUMNS } from '../storage/partition-rows.ts'
import { isChecksumRight, readRecordFile } from '../lake/read-record-file.ts'
import { sqlText } from '../../workers/records/duck-lake.ts'
import type { ColumnType, RecordRow, RecordTable } from './record-table.ts'

/** Rows of one row group of a records file: a market's month of minutes touches one or two. */
const LAKE_RECORD_ROW_GROUP_ROWS = 20_480
/** Type names in the database, and in the file. */
const TYPES = {
  text: { sql: 'VARCHAR', file: 'BYTE_ARRAY UTF8' },
  int4: { sql: 'INTEGER', file: 'INT32 INT_32' },
  int8: { sql: 'BIGINT', file: 'INT64 INT_64' },
  float8: { sql: 'DOUBLE', file: 'DOUBLE null' },
  timestamptz: { sql: 'TIMESTAMP WITH TIME ZONE', file: 'INT64 TIMESTAMP_MICROS' },
} as const satisfies Record<ColumnType, { readonly sql: string; readonly file: string }>

const NS_PER_US = 1_000n

export class PartitionDraft {
  readonly #table: RecordTable
  readonly #instance: DuckDBInstance
  readonly #connection: DuckDBConnection

  private constructor(table: RecordTable, instance: DuckDBInstance, connection: DuckDBConnection) {
    this.#table = table
    this.#instance = instance
    this.#connection = connection
  }

  static async open(table: RecordTable): Promise<PartitionDraft> {
    const instance = await DuckDBInstance.create(':memory:', {
      threads: '1',
      memory_limit: COMPACTION_MEMORY,
    })
    const draft = new PartitionDraft(table, instance, await instance.connect())
    const columns = Object.entries(table.columns).map(([name, type]) => `${name} ${TYPES[type].sql}`)
    await draft.#connection.run("SET TimeZone = 'UTC'")
    await draft.#connection.run(`CREATE TABLE cold (${columns.join(', ')})`)
    await draft.#connection.run(`CREATE TABLE hot (${columns.join(', ')})`)
    return draft
  }

  /**
   * Loads all rows of the partition's present file, and those that only the `kept` file has. Resolves to the time of the last row
   * and the file's revision. Rejects if a checksum is wrong, because the new file would make the damage look right.
   */
  async loadCold(
    path: string,
    kept?: string,
  ): Promise<{ readonly lastMs: number; readonly revision: bigint }> {
    const insert = async (file: string, condition = ''): Promise<void> => {
      const rows = `SELECT ${this.#names()} FROM ${fileSql(file)} ${condition}`
      await readRecordFile(file, () => this.#connection.run(`INSERT INTO cold ${rows}`))
    }
    await insert(path)
    if (kept !== undefined) await insert(kept, `ANTI JOIN cold USING (${this.#table.key.join(', ')})`)
    const [row] = await this.#rows(`SELECT epoch_ms(max(${this.#time}))::DOUBLE FROM cold`)
    const last = row?.[0]
    const [stated] = await this.#rows(
      `SELECT decode(value)::BIGINT FROM parquet_kv_metadata(${sqlText(path)}) WHERE decode(key) = 'revision'`,
    )
    const revision = stated?.[0]
    return {
      lastMs: typeof last === 'number' ? last : Number.NEGATIVE_INFINITY,
      revision: typeof revision === 'bigint' ? revision : 0n,
    }
  }

  /** Adds rows of the relational store. */
  async addHot(rows: readonly RecordRow[]): Promise<void> {
    const appender = await this.#connection.createAppender('hot')
    for (const row of rows) {
      for (const [name, type] of Object.entries(this.#table.columns))
        appendValue(appender, type, row[name] ?? null)
      appender.endRow()
    }
    appender.closeSync()
  }

  /** Merges rows that are in both stores. */
  async mergeCommon(): Promise<void> {
    const key = this.#table.key.join(', ')
    const select = Object.entries(this.#table.columns).map(([name, type]) =>
      type === 'timestamptz' ? `epoch_ms(${name})::DOUBLE AS ${name}` : name,
    )
    const read = (from: string, other: string): Promise<readonly RecordRow[]> =>
      this.#objects(
        `SELECT ${select.join(', ')} FROM ${from} SEMI JOIN ${other} USING (${key}) ORDER BY ${key}`,
      )
    const [cold, hot] = [await read('cold', 'hot'), await read('hot', 'cold')]
    if (cold.length !== hot.length) throw new Error('the file holds a row twice')
    await this.#connection.run(`DELETE FROM hot WHERE (${key}) IN (SELECT (${key}) FROM cold)`)
    await this.addHot(cold.map((row, index) => this.#table.merge(row, hot[index] ?? row)))
    await this.#connection.run(
      `CREATE TABLE merged AS SELECT * FROM hot UNION ALL SELECT * FROM cold ANTI JOIN hot USING (${key})`,
    )
  }

  /** Evaluates columns over the merged rows, with sums grouped by the other columns. */
  select(columns: string): Promise<readonly RecordRow[]> {
    return this.#objects(`SELECT ${columns} FROM merged GROUP BY ALL ORDER BY ALL`)
  }

  /** Whether the merged rows equal those of the present file. */
  async isAsBefore(): Promise<boolean> {
    return (await this.#digest('merged')) === (await this.#digest('cold'))
  }

  /** Writes the merged rows as a lake file with its checksum. */
  async write(path: string, revision: bigint) {
    const figures = await this.#figures('merged')
    // The checksum is searched near the end, so only short values may follow it.
    const metadata = {
      ...(await this.#metadata(figures, revision, 'merged')),
      [RECORD_CHECKSUM_KEY]: RECORD_CHECKSUM_PLACEHOLDER,
    }
    const pairs = Object.entries(metadata).map(([key, value]) => `${key}: ${sqlText(value)}`)
    await this.#connection.run(
      `COPY (SELECT ${this.#names()} FROM merged ORDER BY ${this.#table.key.join(', ')}) TO ${sqlText(path)}` +
        ` (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE ${LAKE_RECORD_ROW_GROUP_ROWS}, USE_TMP_FILE false,` +
        ` KV_METADATA {${pairs.join(', ')}})`,
    )
    await writeRecordFileChecksum(path)
    return figures
  }

  /** Throws if the rows read back from the file differ from the merged rows. */
  async verify(path: string, revision: bigint): Promise<void> {
    if ((await isChecksumRight(path)) !== true) throw damage(path, 'its checksum')
    const file = fileSql(path)
    const found = await this.#rows(
      `SELECT name, type || ' ' || coalesce(converted_type, 'null'), repetition_type FROM parquet_schema(${sqlText(path)})`,
    )
    const expected = Object.entries(this.#table.columns).map(([name, type]) => [
      name,
      TYPES[type].file,
      'OPTIONAL',
    ])
    if (JSON.stringify(found.slice(1)) !== JSON.stringify(expected)) throw damage(path, 'its columns')
    const pairs = await this.#rows(
      `SELECT decode(key), decode(value) FROM parquet_kv_metadata(${sqlText(path)})` +
        ` WHERE decode(key) <> '${RECORD_CHECKSUM_KEY}'`,
    )
    const figures = await this.#metadata(await this.#figures(file), revision, file)
    if (JSON.stringify(Object.fromEntries(pairs)) !== JSON.stringify(figures))
      throw damage(path, 'its metadata')
    const [meant, read] = [await this.#digest('merged'), await this.#digest(file)]
    if (meant !== read) throw damage(path, 'its values')
    const order = `ROW(${this.#table.key.join(', ')})`
    const [unsorted] = await this.#rows(
      `SELECT count(*) FROM (SELECT ${order} AS k, lag(${order}) OVER (ORDER BY file_row_number) AS before` +
        ` FROM ${fileSql(path, ', file_row_number = true')}) WHERE before >= k`,
    )
    if (unsorted?.[0] !== 0n) throw damage(path, 'the order of its rows')
  }

  close(): void {
    this.#connection.closeSync()
    this.#instance.closeSync()
  }

  get #time(): string {
    return PARTITION_COLUMNS[this.#table.dataset].time
  }

  #names(): string {
    return Object.keys(this.#table.columns).join(', ')
  }

  async #metadata(
    { rows, minTs, maxTs }: { rows: bigint; minTs: bigint | null; maxTs: bigint | null },
    revision: bigint,
    source: string,
  ): Promise<Record<string, string>> {
    const { schema, summary } = this.#table
    const summaryRows = summary === null ? [] : await this.#rows(summary.sql(source))
    return {
      schema,
      rows: String(rows),
      min_ts: String(minTs ?? ''),
      max_ts: String(maxTs ?? ''),
      revision: String(revision),
      ...(summary === null ? {} : { [summary.key]: JSON.stringify(summaryRows) }),
    }
  }

  /** The figures in the file's metadata. Instants are ns since the epoch, as in every lake file; null without rows. */
  async #figures(source: string) {
    const [row] = await this.#rows(
      `SELECT count(*), epoch_us(min(${this.#time})), epoch_us(max(${this.#time})) FROM ${source}`,
    )
    const [rows, min, max] = row as [bigint, bigint | null, bigint | null]
    return {
      rows,
      minTs: min === null ? null : min * NS_PER_US,
      maxTs: max === null ? null : max * NS_PER_US,
    }
  }

  /** A number that changes with every row and value, independent of their order; nulls count as values. */
  async #digest(source: string): Promise<string> {
    const [row] = await this.#rows(
      `SELECT count(*) || ':' || coalesce(sum(hash(${this.#names()})::HUGEINT), 0) FROM ${source}`,
    )
    return String(row?.[0])
  }

  async #rows(sql: string): Promise<readonly (readonly unknown[])[]> {
    return (await this.#connection.runAndReadAll(sql)).getRows()
  }

  async #objects(sql: string): Promise<readonly RecordRow[]> {
    return (await this.#connection.runAndReadAll(sql)).getRowObjects() as unknown as readonly RecordRow[]
  }
}

function appendValue(
  appender: DuckDBAppender,
  type: ColumnType,
  value: string | number | bigint | null,
): void {
  if (value === null) appender.appendNull()
  else if (type === 'text') appender.appendVarchar(String(value))
  else if (type === 'int4') appender.appendInteger(Number(value))
  else if (type === 'int8') appender.appendBigInt(BigInt(value))
  else if (type === 'float8') appender.appendDouble(Number(value))
  else appender.appendTimestampTZ(new DuckDBTimestampTZValue(BigInt(value) * 1_000n))
}

/** Reads only the file's own columns, not the names in its directories. */
function fileSql(path: string, options = ''): string {
  return `read_parquet(${sqlText(path)}, hive_partitioning = false${options})`
}

function damage(path: string, what: string): Error {
  return new Error(`${path} does not read back as it was written: ${what}`)
}
