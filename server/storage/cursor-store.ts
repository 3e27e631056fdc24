// The progress of each source of the ingest: the windows fetched completely, so that none is fetched twice, the source's own state
// (paging cursors, validators), and the outcome of its last runs. A window is completed in the transaction that writes its rows.

import { instantValue, rawSql, type Sql, sql } from '../../shared/sql/statement.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** A source's progress in one scope: a series, a station, a product. */
export interface CursorName {
  readonly source: string
  readonly scope: string
}

/** `fromMs` inclusive, `toMs` exclusive. */
export interface TimeWindow {
  readonly fromMs: number
  readonly toMs: number
}

/** The clocks of collectors may differ by this much. A window completed further ahead comes from a wrong clock. */
export const CLOCKS_APART_MS_MAX = 10 * 60 * 1000

/** One row of the status table. Instants are milliseconds since the epoch, null for never. */
export interface CursorStatus extends CursorName {
  readonly rows_written: bigint
  readonly last_success_at: number | null
  readonly last_failure_at: number | null
  readonly last_failure: string | null
  readonly consecutive_failures: number
  /** End of the newest completed window. */
  readonly completed_to: number | null
  /** Completed windows; more than one means gaps. */
  readonly window_count: number
}

const UPSERT = rawSql('ON CONFLICT (source, scope) DO UPDATE SET')

/** Records that everything in a window was fetched and written. Adjacent windows are joined. */
export async function completeWindow(
  transaction: StoreTransaction,
  { source, scope }: CursorName,
  window: TimeWindow,
): Promise<void> {
  await transaction.run(sql`
    INSERT INTO ingest_cursors (source, scope, completed) VALUES (${source}, ${scope}, ${rangeOf(window)})
    ${UPSERT} completed = ingest_cursors.completed + excluded.completed`)
}

/** Makes a window missing again. */
export async function reopenWindow(
  transaction: StoreTransaction,
  cursor: CursorName,
  window: TimeWindow,
): Promise<void> {
  await transaction.run(
    sql`UPDATE ingest_cursors SET completed = completed - ${rangeOf(window)} ${ofCursor(cursor)}`,
  )
}

/**
 * The parts of a window that are not complete yet, in order. A day counts as complete only when it is over, because a fast clock
 * may have completed future days.
 */
export async function missingWindows(
  postgres: Postgres,
  cursor: CursorName,
  window: TimeWindow,
  nowMs: number,
): Promise<TimeWindow[]> {
  const windows = await postgres.run<TimeWindow>(sql`
    SELECT lower(missing) AS "fromMs", upper(missing) AS "toMs" FROM unnest(${rangeOf(window)} - coalesce(
      (SELECT completed * ${beforeToday(nowMs)} FROM ingest_cursors ${ofCursor(cursor)}), '{}')) AS missing
    ORDER BY missing`)
  return [...windows]
}

/** The windows that are complete, in order. */
export async function completedWindows(postgres: Postgres, cursor: CursorName): Promise<TimeWindow[]> {
  const windows = await postgres.run<TimeWindow>(sql`
    SELECT lower(part) AS "fromMs", upper(part) AS "toMs" FROM ingest_cursors, unnest(completed) AS part
    ${ofCursor(cursor)} ORDER BY part`)
  return [...windows]
}

/** A source's own state. An earlier version may have written it, without some members. */
export async function readCursorState<State extends object = Readonly<Record<string, unknown>>>(
  postgres: Postgres,
  cursor: CursorName,
): Promise<Partial<State>> {
  const [row] = await postgres.run<{ readonly state: Partial<State> | null }>(
    sql`SELECT state FROM ingest_cursors ${ofCursor(cursor)}`,
  )
  return row?.state ?? {}
}

/** Replaces the source's own state. */
export async function writeCursorState(
  transaction: StoreTransaction,
  { source, scope }: CursorName,
  state: object,
): Promise<void> {
  await transaction.run(sql`
    INSERT INTO ingest_cursors (source, scope, state) VALUES (${source}, ${scope}, ${JSON.stringify(state)}::jsonb)
    ${UPSERT} state = excluded.state`)
}

/** Records a successful run and the rows it wrote. Drops windows completed by a fast clock: those that end long after `atMs`. */
export async function recordSuccess(
  transaction: StoreTransaction,
  { source, scope }: CursorName,
  atMs: number,
  rowCount: number,
): Promise<void> {
  await transaction.run(sql`
    INSERT INTO ingest_cursors (source, scope, last_success_at, rows_written)
    VALUES (${source}, ${scope}, ${instantValue(atMs)}, ${rowCount})
    ${UPSERT} last_success_at = excluded.last_success_at, consecutive_failures = 0,
      completed = CASE WHEN upper(ingest_cursors.completed) > ${instantValue(atMs + CLOCKS_APART_MS_MAX)}
        THEN ingest_cursors.completed * ${beforeToday(atMs)} ELSE ingest_cursors.completed END,
      rows_written = ingest_cursors.rows_written + excluded.rows_written`)
}

/** Records a failed run; the status table shows `message`. */
export async function recordFailure(
  transaction: StoreTransaction,
  { source, scope }: CursorName,
  atMs: number,
  message: string,
): Promise<void> {
  await transaction.run(sql`
    INSERT INTO ingest_cursors (source, scope, last_failure_at, last_failure, consecutive_failures)
    VALUES (${source}, ${scope}, ${instantValue(atMs)}, ${message}, 1)
    ${UPSERT} last_failure_at = excluded.last_failure_at, last_failure = excluded.last_failure,
      consecutive_failures = ingest_cursors.consecutive_failures + 1`)
}

/** Every source and scope, by name. */
export function readCursorStatus(postgres: Postgres): Promise<readonly CursorStatus[]> {
  return postgres.run<CursorStatus>(sql`
    SELECT source, scope, rows_written, last_success_at, last_failure_at, last_failure, consecutive_failures,
      upper(completed) AS completed_to,
      (SELECT count(*)::int4 FROM unnest(completed)) AS window_count
    FROM ingest_cursors ORDER BY source, scope`)
}

function ofCursor({ source, scope }: CursorName): Sql {
  return sql`WHERE source = ${source} AND scope = ${scope}`
}

function beforeToday(nowMs: number): Sql {
  return rangeOf({ fromMs: 0, toMs: Math.floor(nowMs / MS_PER_DAY) * MS_PER_DAY })
}

function rangeOf({ fromMs, toMs }: TimeWindow): Sql {
  return sql`tstzmultirange(tstzrange(${instantValue(fromMs)}, ${instantValue(toMs)}))`
}
