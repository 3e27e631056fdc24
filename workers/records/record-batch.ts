// Rows on their way to an encoder, column by column in the order asked. Numbers, integers, booleans (0 or 1) and
// instants (milliseconds since the epoch) are doubles in which NaN stands for null; strings and dates are texts or null,
// or still in the vector that DuckDB gave, where the encoder can take them from it. Times in nanoseconds are big integers in which
// a negative one stands for null.

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
  /** The zone of each row's labels; UTC where it is left out. */
  readonly zoneOf?: (row: number) => TimeZone
}

/** What is known of an answer before its first byte, and the way to its rows. */
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

/** An array for `rows` values of a field, which are 0, or in the case of texts not there yet. */
export function columnOf(field: RecordField, rows: number): Float64Array | BigInt64Array | (string | null)[] {
  if (field.isBig === true) return new BigInt64Array(rows)
  return isNumeric(field) ? new Float64Array(rows) : []
}

/** The array that holds `rows` nulls of each field. */
export function emptyColumns(fields: readonly RecordField[], rows: number) {
  return fields.map((field) => {
    const column = columnOf(field, rows)
    if (column instanceof BigInt64Array) return column.fill(-1n)
    if (column instanceof Float64Array) return column.fill(Number.NaN)
    column.length = rows
    return column.fill(null)
  })
}
