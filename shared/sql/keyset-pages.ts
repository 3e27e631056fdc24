// Reads a large result as a row of small statements, each beginning after the last key of the one before. No cursor,
// no transaction and no connection is held between two batches, so a reader that takes its time costs the store
// nothing: a protocol cursor would hold a pool connection, or the embedded store's only session, as long as the
// slowest client likes. The price is that the batches are not one snapshot; `checkpoint` is where the caller detects
// what must not change in between (the lake manifest). Runs nothing itself: the statement runner is passed in.

import type { RunStatement, SqlStatement } from './statement.ts'

/** Where a batch begins: after `key`, or, for the first one, after skipping `offset` units. */
export interface BatchStart<Key> {
  readonly key: Key | null
  readonly offset: number
  /** Units wanted at most. */
  readonly limit: number
}

export interface KeysetRead<Row, Key> {
  readonly statementFor: (start: BatchStart<Key>) => SqlStatement
  readonly keyOf: (row: Row) => Key
  /** Units in a batch, when a unit is more than one row. */
  readonly countUnits?: (rows: readonly Row[]) => number
}

export interface KeysetOptions<Key = never> {
  /** Begins behind this key. */
  readonly after?: Key | undefined
  readonly batchUnits: number
  /** Units to skip, and units to return at most; everything by default. */
  readonly offset?: number | undefined
  readonly limit?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after each batch and before it is handed out; throws to end the read. */
  readonly checkpoint?: (() => Promise<void>) | undefined
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
    await options.checkpoint?.()
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
