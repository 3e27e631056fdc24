// Reads a large result by a sequence of small statements, each beginning after the last key of the one before. No cursor, no
// transaction and no connection is held between two batches, so a slow reader costs the store nothing. A protocol cursor would hold
// a pool connection, or the embedded store's only session, as long as the slowest client takes. The batches are not one snapshot.

import type { RunStatement, SqlStatement } from './statement.ts'

/** The start of a batch: after `key` or, for the first batch, after `offset` skipped units. */
export interface BatchStart<Key> {
  readonly key: Key | null
  readonly offset: number
  /** The maximum of units. */
  readonly limit: number
}

export interface KeysetRead<Row, Key> {
  readonly statementFor: (start: BatchStart<Key>) => SqlStatement
  readonly keyOf: (row: Row) => Key
  /** Counts the units of a batch, if a unit may have more than one row. */
  readonly countUnits?: (rows: readonly Row[]) => number
}

export interface KeysetOptions<Key = never> {
  /** Begin after this key. */
  readonly after?: Key | undefined
  readonly batchUnits: number
  /** Units to skip, and the maximum of units to return. Default: all units. */
  readonly offset?: number | undefined
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
}

/** Yields batches that are never empty, in key order, until the result or the limit ends or the signal aborts. */
export async function* keysetPages<Row, Key>(
  run: RunStatement,
  read: KeysetRead<Row, Key>,
  options: KeysetOptions<Key>,
): AsyncGenerator<readonly Row[], void, void> {
  let key: Key | null = options.after ?? null
  let offset = options.offset ?? 0
  let remaining = options.limit ?? Number.POSITIVE_INFINITY
  while (remaining > 0) {
    options.signal?.throwIfAborted()
    const limit = Math.min(options.batchUnits, remaining)
    const rows = await run<Row>(read.statementFor({ key, offset, limit }))
    const last = rows.at(-1)
    if (last === undefined) return
    const unitCount = read.countUnits?.(rows) ?? rows.length
    key = read.keyOf(last)
    offset = 0
    remaining -= unitCount
    yield rows
    if (unitCount < limit) return
  }
}
