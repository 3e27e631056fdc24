// Replaces autovacuum, which the embedded store lacks: refreshes planner statistics of tables that have outgrown theirs, and
// removes dead rows. Without statistics, a page of a large table is found by sorting all of it. It works in small steps, because
// all other statements wait meanwhile.

import { rawSql, sql } from '../../shared/sql/statement.ts'
import type { Postgres } from './postgres.ts'

const EMBEDDED_DEAD_ROWS_MIN = 10_000

// The planner scales a table's statistics with its size, so they are good while the size is within a factor of two.
const NEEDY_TABLES = sql`
  SELECT c.relname::text AS name, coalesce(s.n_dead_tup, 0) > ${EMBEDDED_DEAD_ROWS_MIN} AND s.n_dead_tup > s.n_live_tup / 5 AS has_dead_rows
  FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid,
    LATERAL (SELECT pg_relation_size(c.oid) / current_setting('block_size')::int8 AS pages) now
  WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
    AND (now.pages > 2 * c.relpages OR 2 * now.pages < c.relpages
      OR (coalesce(s.n_dead_tup, 0) > ${EMBEDDED_DEAD_ROWS_MIN} AND s.n_dead_tup > s.n_live_tup / 5))
  ORDER BY c.relname`

/** Analyzes the tables that need it and removes their dead rows; returns the tables' names. */
export async function maintainTables(postgres: Postgres): Promise<string[]> {
  const tables = await postgres.run<{ readonly name: string; readonly has_dead_rows: boolean }>(NEEDY_TABLES)
  for (const { name, has_dead_rows } of tables) {
    await postgres.run(rawSql(`${has_dead_rows ? 'VACUUM (ANALYZE)' : 'ANALYZE'} ${name}`))
  }
  return tables.map(({ name }) => name)
}
