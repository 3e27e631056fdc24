// How far each source of the ingest has come: the windows that were fetched completely, so that none is asked for
// twice, its own state (paging cursors, validators), and how its last runs went. A window is completed in the same
// transaction that writes its rows.

import { StatementBuilder } from '../../shared/sql/statement.ts'
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

const UPSERT = 'ON CONFLICT (source, scope) DO UPDATE SET'

/** Notes that everything in a window was fetched and written. Windows that touch become one. */
export async function completeWindow(
  transaction: StoreTransaction,
  cursor: CursorName,
  window: TimeWindow,
): Promise<void> {
  const statement = new StatementBuilder()
  const values = nameValues(statement, cursor)
  const range = rangeText(statement, window)
  await transaction.run(
    statement.build(
      `INSERT INTO ingest_cursors (source, scope, completed) VALUES (${values}, tstzmultirange(${range}))` +
        ` ${UPSERT} completed = ingest_cursors.completed + excluded.completed`,
    ),
  )
}

/** Makes a window missing again, whatever was fetched of it. */
export async function reopenWindow(
  transaction: StoreTransaction,
  cursor: CursorName,
  window: TimeWindow,
): Promise<void> {
  const statement = new StatementBuilder()
  const opened = `tstzmultirange(${rangeText(statement, window)})`
  const source = statement.add(cursor.source, 'text')
  await transaction.run(
    statement.build(
      `UPDATE ingest_cursors SET completed = completed - ${opened}` +
        ` WHERE source = ${source} AND scope = ${statement.add(cursor.scope, 'text')}`,
    ),
  )
}

/** The parts of a window that are not complete yet, in order. */
export async function missingWindows(
  postgres: Postgres,
  cursor: CursorName,
  window: TimeWindow,
): Promise<TimeWindow[]> {
  const statement = new StatementBuilder()
  const wanted = `tstzmultirange(${rangeText(statement, window)})`
  const source = statement.add(cursor.source, 'text')
  const scope = statement.add(cursor.scope, 'text')
  const rows = await postgres.run<{ readonly from_ts: number; readonly to_ts: number }>(
    statement.build(
      `SELECT lower(missing) AS from_ts, upper(missing) AS to_ts FROM unnest(${wanted} - coalesce(` +
        `(SELECT completed FROM ingest_cursors WHERE source = ${source} AND scope = ${scope}), '{}')) AS missing` +
        ` ORDER BY missing`,
    ),
  )
  return rows.map(({ from_ts, to_ts }) => ({ fromMs: from_ts, toMs: to_ts }))
}

/** The windows that are complete, in order. */
export async function completedWindows(postgres: Postgres, cursor: CursorName): Promise<TimeWindow[]> {
  const rows = await postgres.run<{ readonly from_ts: number; readonly to_ts: number }>({
    text: `SELECT lower(part) AS from_ts, upper(part) AS to_ts FROM ingest_cursors, unnest(completed) AS part
      WHERE source = $1::text AND scope = $2::text ORDER BY part`,
    parameters: [cursor.source, cursor.scope],
  })
  return rows.map(({ from_ts, to_ts }) => ({ fromMs: from_ts, toMs: to_ts }))
}

/** The source's own state: any JSON value it stored, or undefined. */
export async function readCursorState(postgres: Postgres, cursor: CursorName): Promise<unknown> {
  const [row] = await postgres.run<{ readonly state: unknown }>({
    text: 'SELECT state FROM ingest_cursors WHERE source = $1::text AND scope = $2::text',
    parameters: [cursor.source, cursor.scope],
  })
  return row?.state
}

/** Replaces the source's own state. */
export async function writeCursorState(
  transaction: StoreTransaction,
  cursor: CursorName,
  state: unknown,
): Promise<void> {
  const statement = new StatementBuilder()
  const values = nameValues(statement, cursor)
  const json = `${statement.add(JSON.stringify(state), 'text')}::jsonb`
  await transaction.run(
    statement.build(
      `INSERT INTO ingest_cursors (source, scope, state) VALUES (${values}, ${json}) ${UPSERT} state = excluded.state`,
    ),
  )
}

/** Notes a run that went well and how many rows it wrote. */
export async function recordSuccess(
  transaction: StoreTransaction,
  cursor: CursorName,
  atMs: number,
  rowCount: number,
): Promise<void> {
  const statement = new StatementBuilder()
  const values = nameValues(statement, cursor)
  await transaction.run(
    statement.build(
      `INSERT INTO ingest_cursors (source, scope, last_success_at, rows_written)` +
        ` VALUES (${values}, ${statement.addInstant(atMs)}, ${statement.add(rowCount, 'int8')}) ${UPSERT}` +
        ` last_success_at = excluded.last_success_at, consecutive_failures = 0,` +
        ` rows_written = ingest_cursors.rows_written + excluded.rows_written`,
    ),
  )
}

/** Notes a run that failed; `message` is what a status table shows. */
export async function recordFailure(
  transaction: StoreTransaction,
  cursor: CursorName,
  atMs: number,
  message: string,
): Promise<void> {
  const statement = new StatementBuilder()
  const values = nameValues(statement, cursor)
  await transaction.run(
    statement.build(
      `INSERT INTO ingest_cursors (source, scope, last_failure_at, last_failure, consecutive_failures)` +
        ` VALUES (${values}, ${statement.addInstant(atMs)}, ${statement.add(message, 'text')}, 1) ${UPSERT}` +
        ` last_failure_at = excluded.last_failure_at, last_failure = excluded.last_failure,` +
        ` consecutive_failures = ingest_cursors.consecutive_failures + 1`,
    ),
  )
}

/** Every source and scope, by name. */
export function readCursorStatus(postgres: Postgres): Promise<readonly CursorStatus[]> {
  return postgres.run<CursorStatus>({
    text: `
      SELECT source, scope, rows_written, last_success_at, last_failure_at, last_failure, consecutive_failures,
        upper(completed) AS completed_to,
        (SELECT count(*)::int4 FROM unnest(completed)) AS window_count
      FROM ingest_cursors ORDER BY source, scope`,
    parameters: [],
  })
}

function nameValues(statement: StatementBuilder, cursor: CursorName): string {
  return `${statement.add(cursor.source, 'text')}, ${statement.add(cursor.scope, 'text')}`
}

function rangeText(statement: StatementBuilder, window: TimeWindow): string {
  return `tstzrange(${statement.addInstant(window.fromMs)}, ${statement.addInstant(window.toMs)})`
}
