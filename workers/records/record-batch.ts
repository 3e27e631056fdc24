// Rows for an encoder, in columns of the requested order. Numbers, integers, booleans (0 or 1) and instants (milliseconds since
// the epoch) are doubles; NaN stands for null. Strings and dates are texts or null; encoders that read DuckDB's vectors get the
// vectors instead. Times in nanoseconds are BigInts; a negative one stands for null.

import type { RecordField } from '../../shared/record-field.ts'
import type { RowSpan } from '../../shared/stream-task.ts'
import type { TimeZone } from '../../shared/time-zone.ts'
import type { TextVector } from './duck-vectors.ts'

export type ColumnValues = Float64Array | BigInt64Array | readonly (string | null)[] | TextVector

export interface RecordBatch {
  readonly rows: number
  readonly columns: readonly ColumnValues[]
  /** Of candles, observations and trades. */
  readonly span?: RowSpan
  /** The zone of each row's labels. Default: UTC. */
  readonly zoneOf?: (row: number) => TimeZone
}

/** The facts of an answer that are known before its first byte, and its rows. */
export interface RecordAnswer {
  readonly rows: number
  readonly hasMore: boolean
  readonly batches: () => Iterable<RecordBatch> | AsyncIterable<RecordBatch>
}

export const NO_ROWS: RecordAnswer = { rows: 0, hasMore: false, batches: () => [] }

/** The body of one answer: `begin`, batches in order, `finish`. Each may wait for the client. */
export interface RecordEncoder {
  begin(): Promise<void>
  write(batch: RecordBatch): Promise<void>
  finish(): Promise<void>
}

/** Whether a field's values are doubles. */
export function isNumeric(field: RecordField): boolean {
  return field.type !== 'string' && field.type !== 'date'
}

/** An array for `rows` values of a field: zeros, or for texts an empty array. */
export function columnOf(field: RecordField, rows: number): Float64Array | BigInt64Array | (string | null)[] {
  if (field.isBig === true) return new BigInt64Array(rows)
  return isNumeric(field) ? new Float64Array(rows) : []
}

/** For each field, an array of `rows` nulls. */
export function emptyColumns(fields: readonly RecordField[], rows: number) {
  return fields.map((field) => {
    const column = columnOf(field, rows)
    if (column instanceof BigInt64Array) return column.fill(-1n)
    if (column instanceof Float64Array) return column.fill(Number.NaN)
    column.length = rows
    return column.fill(null)
  })
}
