// Counts rows of the relational store, without those that lake files cover.

import { instantValue, type Sql, type SqlStatement, sql, whereAll } from './statement.ts'

/** A span of a scope (a series or a station) whose rows are served from the lake instead of the table. */
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

/** One row with `rows`: the number of rows that match the conditions outside the covered spans, counted up to `countMax`. */
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
