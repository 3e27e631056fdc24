// The number of rows that a statement reads in a table, as counted by the store: the work of a response without its time.

import type { Postgres } from '../../server/storage/postgres.ts'
import type { SqlStatement } from '../../shared/sql/statement.ts'

interface PlanNode {
  readonly 'Relation Name'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

/** Runs the statement and resolves to the rows of `table` that it read, including filtered ones. */
export async function rowsRead(postgres: Postgres, statement: SqlStatement, table: string): Promise<number> {
  const [row] = await postgres.run<{ readonly 'QUERY PLAN': unknown }>({
    text: `EXPLAIN (ANALYZE, FORMAT JSON) ${statement.text}`,
    parameters: statement.parameters,
  })
  const plan = row?.['QUERY PLAN']
  const [root] = (typeof plan === 'string' ? JSON.parse(plan) : plan) as [{ readonly Plan: PlanNode }]
  return rowsBelow(root.Plan, table)
}

function rowsBelow(node: PlanNode, table: string): number {
  const read = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)
  const own = node['Relation Name'] === table ? Math.round(read * node['Actual Loops']) : 0
  return (node.Plans ?? []).reduce((sum, each) => sum + rowsBelow(each, table), own)
}
