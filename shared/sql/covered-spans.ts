// Counting rows of the relational store beside those for which something else counts.

import { instantValue, type Sql, type SqlStatement, sql, whereAll } from './statement.ts'

/** A scope's instants (a series' or a station's) for which something else than the table counts. */
export interface CoveredSpan {
  readonly scope: string
  readonly fromMs: number
  readonly toMs: number
}

/** A table with its alias, and its columns of scope and instant. */
interface CountedTable {
  readonly from: Sql
  readonly scope: Sql
  readonly instant: Sql
}

/** One row with `rows`: how many fulfil the conditions outside the covered spans, up to `countMax`. */
export function countOutside(
  conditions: readonly (Sql | false)[],
  { from, scope, instant }: CountedTable,
  covered: readonly CoveredSpan[],
  countMax: number,
): SqlStatement {
  const outside = covered.map(({ scope: name, fromMs, toMs }) => {
    const span = sql`${instant} >= ${instantValue(fromMs)} AND ${instant} < ${instantValue(toMs)}`
    return sql`NOT (${scope} = ${name} AND ${span})`
  })
  return sql`SELECT count(*)::int8 AS rows FROM (SELECT FROM ${from} ${whereAll(...conditions, ...outside)}
    LIMIT ${countMax}) counted`
}
