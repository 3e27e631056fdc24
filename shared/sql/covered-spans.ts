// Counting rows of the relational store beside those for which something else counts.

import type { SqlStatement, StatementBuilder } from './statement.ts'

/** A scope's instants (a series' or a station's) for which something else than the table counts. */
export interface CoveredSpan {
  readonly scope: string
  readonly fromMs: number
  readonly toMs: number
}

/** A table with its alias, and its columns of scope and instant. */
interface CountedTable {
  readonly from: string
  readonly scope: string
  readonly instant: string
}

/** One row with `rows`: how many fulfil the statement's conditions outside the covered spans, up to `countMax`. */
export function countOutside(
  statement: StatementBuilder,
  { from, scope, instant }: CountedTable,
  covered: readonly CoveredSpan[],
  countMax: number,
): SqlStatement {
  for (const span of covered) {
    const [name, start] = [statement.add(span.scope, 'text'), statement.addInstant(span.fromMs)]
    const end = statement.addInstant(span.toMs)
    statement.where(`NOT (${scope} = ${name} AND ${instant} >= ${start} AND ${instant} < ${end})`)
  }
  return statement.build(
    `SELECT count(*)::int8 AS rows FROM (SELECT FROM ${from} ${statement.whereClause}` +
      ` LIMIT ${statement.add(countMax, 'int8')}) counted`,
  )
}
