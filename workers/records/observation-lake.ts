// Cold observations: DuckDB queries over the yearly files of the stations, in the answer's order. Each file is checked once, and
// its last instant and revision are kept until it is replaced.

import bindings from '@duckdb/node-bindings'
import { FileFacts } from '../../shared/file-facts.ts'
import { RECORD_LAKE_FILES_MAX } from '../../shared/limits.ts'
import type { RecordField } from '../../shared/record-field.ts'
import { type ObservationKey, STORED_OBSERVATION_COLUMNS } from '../../shared/sql/observation-queries.ts'
import { lakeFileError } from '../lake/lake-file-error.ts'
import { type DuckLake, readParquetSql, sqlInstant, sqlText } from './duck-lake.ts'
import { copyNumbers, TextVector } from './duck-vectors.ts'
import type { FileChecks } from './file-checks.ts'
import { checkRevision, type LakePart } from './lake-partitions.ts'
import { checkLakeFile, heldLakeChunks, lakeChunks, type LakeFileSchema, lakeRows } from './lake-query.ts'
import { type ColumnValues, isNumeric } from './record-batch.ts'

/** A query result of at most this many observations (about 350 bytes each) is held in memory instead of fetched chunk by chunk. */
const HELD_ROWS_MAX = 16_384

const DUCKDB_TYPES = {
  text: ['VARCHAR'],
  timestamptz: ['TIMESTAMP WITH TIME ZONE', 'TIMESTAMP'],
  float8: ['DOUBLE', 'FLOAT', 'INTEGER', 'BIGINT', 'SMALLINT'],
  int4: ['INTEGER', 'SMALLINT', 'BIGINT'],
} as const

const OBSERVATIONS_SCHEMA: LakeFileSchema = {
  schema: 'observations.v1',
  columns: Object.fromEntries(
    Object.entries(STORED_OBSERVATION_COLUMNS).map(([name, type]) => [name, DUCKDB_TYPES[type]]),
  ),
}

/** The sort key, which is always read. */
const KEY_COLUMNS = ['epoch_ms(observed_at)', 'station_code', 'observation_type']

/** What to read: `fromMs` inclusive, `toMs` exclusive, type null for all. */
export interface ColdObservations {
  readonly parts: readonly LakePart[]
  readonly type: string | null
  readonly fromMs: number
  readonly toMs: number
}

/** Rows by (observed_at, station_code, observation_type): the key, and the values of the requested fields. */
export interface ObservationRows {
  readonly length: number
  readonly observedMs: Float64Array
  readonly station: TextList
  readonly type: TextList
  readonly columns: readonly ColumnValues[]
}

/** Texts, none of which is null. */
export interface TextList {
  at(row: number): string | null | undefined
  slice(from: number, to?: number): TextList
}

export interface ObservationReading {
  readonly after: ObservationKey | undefined
  readonly rowsMax: number
  /** Texts stay in DuckDB's vectors and arrays are reused: each batch is valid until the next is read. */
  readonly isPacked: boolean
}

interface KnownFile {
  readonly lastMs: number
  readonly revision: bigint
}

export class ObservationLake {
  readonly #lake: DuckLake
  readonly #checks: FileChecks
  readonly #known = new FileFacts<KnownFile>(RECORD_LAKE_FILES_MAX)

  constructor(lake: DuckLake, checks: FileChecks) {
    this.#lake = lake
    this.#checks = checks
  }

  /** Checks a part against its contract and the manifest. A part that the manifest does not list ends with its last row. */
  async checked(part: LakePart, signal: AbortSignal): Promise<LakePart> {
    const { path, identity } = part
    let known = this.#known.of(path, identity)
    if (known === undefined) {
      known = await this.#check(part, signal)
      this.#known.add(path, identity, known)
    }
    checkRevision(part, known.revision)
    return part.isRegistered ? part : { ...part, toMs: Math.min(part.toMs, known.lastMs + 1) }
  }

  async count(wanted: ColdObservations, countMax: number, signal: AbortSignal): Promise<number> {
    if (wanted.parts.length === 0) return 0
    const sql = `SELECT count(*)::DOUBLE FROM (SELECT 1 FROM ${sourceSql(wanted)} LIMIT ${countMax})`
    const [row] = await lakeRows(this.#lake, wanted.parts, sql, signal)
    return Number(row?.[0] ?? 0)
  }

  async *read(
    wanted: ColdObservations,
    fields: readonly RecordField[],
    { after, rowsMax, isPacked }: ObservationReading,
    signal: AbortSignal,
  ): AsyncGenerator<ObservationRows, void, void> {
    if (wanted.parts.length === 0) return
    const columns = [...new Set([...KEY_COLUMNS, ...fields.map(valueSql)])]
    const places = fields.map((field) => columns.indexOf(valueSql(field)))
    const sql =
      `SELECT ${columns.join(', ')}` +
      ` FROM ${sourceSql(wanted)} ${after === undefined ? '' : behindSql(after)} ORDER BY observed_at, station_code, observation_type LIMIT ${rowsMax}`
    const arrays = fields.map(() => new Float64Array(isPacked ? bindings.vector_size() : 0))
    const read =
      rowsMax <= HELD_ROWS_MAX
        ? await heldLakeChunks(this.#lake, wanted.parts, sql, signal)
        : lakeChunks(this.#lake, wanted.parts, sql, signal)
    for await (const chunk of read) {
      const rows = chunk.rowCount
      const observedMs = new Float64Array(rows)
      copyNumbers(chunk.getColumnVector(0), observedMs, 0)
      const texts = (index: number): TextVector | string[] =>
        isPacked ? new TextVector(chunk.getColumnVector(index)) : (chunk.getColumnValues(index) as string[])
      const keys = { station: texts(1), type: texts(2) }
      const values = fields.map((field, index) => {
        const place = places[index]!
        if (!isNumeric(field)) return place === 1 ? keys.station : place === 2 ? keys.type : texts(place)
        const column = isPacked ? arrays[index]!.subarray(0, rows) : new Float64Array(rows)
        if (place === 0) column.set(observedMs)
        else copyNumbers(chunk.getColumnVector(place), column, 0)
        return column
      })
      yield { length: rows, observedMs, ...keys, columns: values }
    }
  }

  async #check(part: LakePart, signal: AbortSignal): Promise<KnownFile> {
    await this.#checks.check(part)
    const revision = await checkLakeFile(this.#lake, part, OBSERVATIONS_SCHEMA, signal)
    const required = ['station_code', 'observed_at', 'observation_type', 'source']
    const hasNull = required.map((name) => `${name} IS NULL`).join(' OR ')
    const sql =
      `SELECT epoch_ms(max(observed_at))::DOUBLE, (count(*) FILTER (${hasNull}))::DOUBLE,` +
      ` (count(*) FILTER (station_code <> ${sqlText(part.scope)}))::DOUBLE FROM ${readParquetSql([part.path])}`
    const [row] = await lakeRows(this.#lake, [part], sql, signal)
    const [lastMs, nullCount, strangerCount] = row as [number | null, number, number]
    if (nullCount > 0)
      throw lakeFileError(part.name, 'an observation in it lacks its station, time, type or source')
    if (strangerCount > 0) throw lakeFileError(part.name, 'it holds observations of another station')
    return { lastMs: lastMs ?? part.fromMs - 1, revision }
  }
}

/** A field in its stored type, which keeps the rows that DuckDB sorts narrow. */
function valueSql({ name, type }: RecordField): string {
  return type === 'instant' ? `epoch_ms(${name})` : name
}

function behindSql({ observedMs, stationCode, type }: ObservationKey): string {
  const instant = sqlInstant(observedMs)
  const isLater = `(observed_at, station_code, observation_type) > (${instant}, ${sqlText(stationCode)}, ${sqlText(type)})`
  // DuckDB prunes files and row groups by the first condition.
  return `WHERE observed_at >= ${instant} AND ${isLater}`
}

/** The rows of each file within its part and the span. */
function sourceSql({ parts, type, fromMs, toMs }: ColdObservations): string {
  const branches = parts.map((part) => {
    const from = sqlInstant(Math.max(fromMs, part.fromMs))
    const to = sqlInstant(Math.min(toMs, part.toMs))
    const ofType = type === null ? '' : ` AND observation_type = ${sqlText(type)}`
    return `SELECT * FROM ${readParquetSql([part.path])} WHERE observed_at >= ${from} AND observed_at < ${to}${ofType}`
  })
  return `(${branches.join(' UNION ALL ')})`
}
