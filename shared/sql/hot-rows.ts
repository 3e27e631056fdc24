// Statements over the hot rows of a dataset: those that readers take from the relational store. A row that its partition's manifest
// entry declares cold is left out even if it still exists (it arrived late and waits for the next compaction), so that no row comes
// from both lake and store.

import { RECORD_PARTITIONS, type RecordDataset } from '../lake-layout.ts'
import type { KeysetRead } from './keyset-pages.ts'
import { generationColumn, type WithGeneration } from './manifest-queries.ts'
import { instantValue, rawSql, type Sql, type SqlStatement, sql, whereAll } from './statement.ts'

/** A span of a scope (a series or a station) whose rows are served from the lake instead of the table. */
export interface CoveredSpan {
  readonly scope: string
  readonly fromMs: number
  readonly toMs: number
}

/** Of a row's instant: `fromMs` inclusive, `toMs` exclusive. */
export interface InstantRange {
  readonly fromMs: number
  readonly toMs: number
}

/** A table, which has the name of its dataset. Other names are those of its columns. */
interface HotTable<Selection, Row, Key> {
  readonly dataset: RecordDataset
  readonly columns: object
  readonly scope: string
  readonly instant: string
  /** The columns of the key, the instant first. */
  readonly order: readonly string[]
  readonly conditionsOf: (selection: Selection) => readonly (Sql | false)[]
  readonly keyOf: (row: Row) => Key
  /** The values of these columns. */
  readonly valuesOf: (key: Key) => Sql
}

export function hotRows<Selection, Row, Key>(table: HotTable<Selection, Row, Key>) {
  const { dataset, columns, conditionsOf, keyOf, valuesOf } = table
  const column = (name: string): string => `${dataset}.${name}`
  const [from, names] = [rawSql(dataset), rawSql(Object.keys(columns).join(', '))]
  const order = rawSql(table.order.map(column).join(', '))
  const [scope, instant] = [rawSql(column(table.scope)), rawSql(column(table.instant))]
  const period = rawSql(`date_trunc('${RECORD_PARTITIONS[dataset].period}', ${column(table.instant)}, 'UTC')`)
  // Looks up the one partition that a row can belong to by its whole key.
  const isHot = sql`NOT EXISTS (SELECT FROM lake_manifest p WHERE p.dataset = ${rawSql(`'${dataset}'`)}
  AND p.scope = ${scope} AND p.period_start = ${period} AND ${instant} < p.cut_over)`
  const since = (ms: number): Sql => sql`${instant} >= ${instantValue(ms)}`
  const before = (ms: number): Sql => sql`${instant} < ${instantValue(ms)}`
  return {
    isHot,
    /** The rows of a range in the order of their keys, each with the generation of the manifest that it was read under. */
    read: (selection: Selection, { fromMs, toMs }: InstantRange): KeysetRead<Row & WithGeneration, Key> => ({
      keyOf,
      statementFor({ key, limit, offset }) {
        const after = key === null ? since(fromMs) : sql`(${order}) > (${valuesOf(key)})`
        const rows = whereAll(...conditionsOf(selection), isHot, before(toMs), after)
        return sql`SELECT ${names}, ${generationColumn(dataset)} FROM ${from} ${rows}
          ORDER BY ${order} LIMIT ${limit} OFFSET ${offset}`
      },
    }),
    /** One row with `rows`: the number of rows of a range outside the covered spans, counted up to `countMax`. */
    count: (
      selection: Selection,
      { fromMs, toMs }: InstantRange,
      covered: readonly CoveredSpan[],
      countMax: number,
    ): SqlStatement => {
      const outside = covered.map(
        (span) => sql`NOT (${scope} = ${span.scope} AND ${since(span.fromMs)} AND ${before(span.toMs)})`,
      )
      const counted = whereAll(...conditionsOf(selection), isHot, since(fromMs), before(toMs), ...outside)
      return sql`SELECT count(*)::int8 AS rows FROM (SELECT FROM ${from} ${counted} LIMIT ${countMax}) counted`
    },
  }
}
