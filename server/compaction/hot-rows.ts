// Every row of a partition in the relational store up to an instant, including late rows, which the API's own statements skip
// because of the manifest.

import { STORE_READ_BATCH_ROWS } from '../../shared/limits.ts'
import { keysetPages, type KeysetRead } from '../../shared/sql/keyset-pages.ts'
import { instantValue, joinSql, rawSql, type Sql, sql, typedValue } from '../../shared/sql/statement.ts'
import { type CompactionScope, rowsOf } from '../storage/partition-rows.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { RecordRow, RecordTable } from './record-table.ts'

/** Batches of rows, in the order of an index. */
export function readHotRows(
  postgres: Postgres,
  table: RecordTable,
  scope: CompactionScope,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly RecordRow[], void, void> {
  return keysetPages((statement) => postgres.run(statement, { signal }), hotRead(table, scope), {
    batchUnits: STORE_READ_BATCH_ROWS,
    signal,
  })
}

function hotRead(
  { columns, readOrder }: RecordTable,
  scope: CompactionScope,
): KeysetRead<RecordRow, RecordRow> {
  const order = rawSql(readOrder.join(', '))
  const keyValue = (row: RecordRow, name: string): Sql => {
    const [value, type] = [row[name], columns[name]]
    if (value === undefined || value === null || type === undefined) throw new Error(`${name} is no key`)
    return sql`${type === 'timestamptz' ? instantValue(Number(value)) : typedValue(value, type)}`
  }
  return {
    keyOf: (row) => row,
    statementFor: ({ key, limit }) => {
      const values = key === null ? [] : readOrder.map((name) => keyValue(key, name))
      const after = key === null ? rawSql('') : sql`AND (${order}) > (${joinSql(values, ', ')})`
      return sql`SELECT ${rawSql(Object.keys(columns).join(', '))} ${rowsOf(scope)} ${after}
        ORDER BY ${order} LIMIT ${limit}`
    },
  }
}
