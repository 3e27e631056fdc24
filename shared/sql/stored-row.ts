// The type of a stored row, from the SQL types of its columns.

/** What a column holds in memory: an instant is milliseconds since the epoch. */
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
