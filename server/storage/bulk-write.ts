// Bulk writes: the rows are sent as one JSON parameter, which the server turns into a table. So there is one parameter, nulls stay
// null, numbers are exact (64-bit integers are sent as text), and both stores run the same SQL.

import type { SqlStatement } from '../../shared/sql/statement.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** Rows of one write statement. */
const STORE_WRITE_BATCH_ROWS = 5_000

/** Column names and SQL types. */
export type ColumnTypes = Readonly<Record<string, string>>

/** `jsonb_to_recordset($1 …) AS written(…)`: the JSON parameter as a table. */
export function recordset(columns: ColumnTypes): string {
  const list = Object.entries(columns).map(([name, type]) => `${name} ${type}`)
  return `jsonb_to_recordset($1::text::jsonb) AS written(${list.join(', ')})`
}

/** A statement whose only parameter is the rows, with the named columns of each. */
export function bulkStatement(text: string, rows: readonly object[], columns: ColumnTypes): SqlStatement {
  const json = rows.map((row) =>
    Object.fromEntries(
      Object.entries(row as Record<string, unknown>)
        .filter(([name]) => name in columns)
        .map(([name, value]) => [name, jsonValue(value, columns[name])]),
    ),
  )
  return { text, parameters: [JSON.stringify(json)] }
}

/** One row of every key, merged or the last one: one statement must not write a row twice. */
export function oneOfEachKey<Row>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  merge: (known: Row, row: Row) => Row = (_, row) => row,
): Row[] {
  const byKey = new Map<string, Row>()
  for (const row of rows) {
    const key = keyOf(row)
    const known = byKey.get(key)
    byKey.set(key, known === undefined ? row : merge(known, row))
  }
  return [...byKey.values()]
}

/** Splits rows into batches for one statement each. */
export function* writeBatches<Row>(rows: readonly Row[]): Generator<readonly Row[], void, void> {
  for (let at = 0; at < rows.length; at += STORE_WRITE_BATCH_ROWS) {
    yield rows.slice(at, at + STORE_WRITE_BATCH_ROWS)
  }
}

/** Writes any number of rows, one statement a batch; resolves to all rows that the statements return. */
export async function writeRows<Returned>(
  transaction: StoreTransaction,
  text: string,
  rows: readonly object[],
  columns: ColumnTypes,
): Promise<readonly Returned[]> {
  const returned: Returned[] = []
  for (const batch of writeBatches(rows)) {
    returned.push(...(await transaction.run<Returned>(bulkStatement(text, batch, columns))))
  }
  return returned
}

/** `a = excluded.a, b = excluded.b` for an upsert. */
export function assignments(columns: readonly string[]): string {
  return columns.map((name) => `${name} = excluded.${name}`).join(', ')
}

/** SQL: whether an upsert would change any of the columns. */
export function differs(table: string, columns: readonly string[]): string {
  const stored = columns.map((name) => `${table}.${name}`)
  const written = columns.map((name) => `excluded.${name}`)
  return `(${stored.join(', ')}) IS DISTINCT FROM (${written.join(', ')})`
}

/** 64-bit integers and instants (milliseconds since the epoch) as text that the server's types accept. */
function jsonValue(value: unknown, type: string | undefined): unknown {
  if (typeof value === 'bigint') return value.toString()
  if (type === 'timestamptz' && typeof value === 'number') return new Date(value).toISOString()
  return value
}
