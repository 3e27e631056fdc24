// The columns of stored rows: maps served fields to SQL types, and SQL types to the type of a row.

import type { RecordField } from '../record-field.ts'

/** The type of each SQL type's values in memory. An instant is milliseconds since the epoch. */
interface ColumnValues {
  readonly text: string
  readonly boolean: boolean
  readonly int4: number
  readonly int8: bigint
  readonly float8: number
  readonly timestamptz: number
  readonly jsonb: readonly unknown[]
}

export type StoredRow<
  Columns extends Readonly<Record<string, keyof ColumnValues>>,
  Nullable extends keyof Columns = never,
> = {
  readonly [Name in keyof Columns]: ColumnValues[Columns[Name]] | (Name extends Nullable ? null : never)
}

const SQL_TYPES = {
  string: 'text',
  date: 'date',
  number: 'float8',
  integer: 'int4',
  boolean: 'boolean',
  instant: 'timestamptz',
} as const

/** The SQL types of fields that are stored as they are served. */
export function columnsOf<Field extends RecordField>(fields: readonly Field[]) {
  type Columns = { readonly [F in Field as F['name']]: (typeof SQL_TYPES)[F['type']] }
  return Object.fromEntries(fields.map(({ name, type }) => [name, SQL_TYPES[type]])) as Columns
}
