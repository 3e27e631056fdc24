// Every row that the relational store holds of a partition up to an instant, also those that arrived late and that the
// manifest therefore hides from the API's own statements.

import { STORE_READ_BATCH_ROWS } from '../../shared/limits.ts'
import { keysetPages, type KeysetRead } from '../../shared/sql/keyset-pages.ts'
import { StatementBuilder } from '../../shared/sql/statement.ts'
import type { CompactionScope } from '../storage/partition-rows.ts'
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
  table: RecordTable,
  { scope, fromMs, toMs }: CompactionScope,
): KeysetRead<RecordRow, RecordRow> {
  const order = table.readOrder.join(', ')
  return {
    keyOf: (row) => row,
    statementFor({ key, limit }) {
      const statement = new StatementBuilder()
      statement.where(`${table.scope} = ${statement.add(scope, 'text')}`)
      statement.where(`${table.time} >= ${statement.addInstant(fromMs)}`)
      statement.where(`${table.time} < ${statement.addInstant(toMs)}`)
      if (key !== null) {
        const after = table.readOrder.map((name) => keyValue(statement, table, name, key))
        statement.where(`(${order}) > (${after.join(', ')})`)
      }
      return statement.build(
        `SELECT ${Object.keys(table.columns).join(', ')} FROM ${table.dataset} ${statement.whereClause}` +
          ` ORDER BY ${order} LIMIT ${statement.add(limit, 'int8')}`,
      )
    },
  }
}

function keyValue(statement: StatementBuilder, table: RecordTable, name: string, row: RecordRow): string {
  const value = row[name]
  const type = table.columns[name]
  if (value === undefined || value === null || type === undefined) throw new Error(`${name} is no key`)
  return type === 'timestamptz' ? statement.addInstant(Number(value)) : statement.add(value, type)
}
