// The two datasets that compaction moves, as data: columns with their types in both stores, the key of a row, and the sort order in
// the lake. Rules: contract.md 36 and 37.

import { CANDLE_SPANS_KEY, candleSpansSql } from '../../shared/candle-spans.ts'
import type { RecordDataset } from '../../shared/lake-layout.ts'
import { STORED_CANDLE_COLUMNS } from '../../shared/sql/candle-queries.ts'
import { STORED_OBSERVATION_COLUMNS, type StoredObservation } from '../../shared/sql/observation-queries.ts'
import { mergeObservation } from '../ingest/observation-precedence.ts'

export type ColumnType = 'text' | 'int4' | 'int8' | 'float8' | 'timestamptz'

/** A row as read from the relational store: instants are milliseconds since the epoch, int8 is a bigint. */
export type RecordRow = Readonly<Record<string, string | number | bigint | null>>

export interface RecordTable {
  readonly dataset: RecordDataset
  /** The name in the file's metadata. */
  readonly schema: string
  readonly columns: Readonly<Record<string, ColumnType>>
  /** Identify a row within its scope, in the lake's sort order. */
  readonly key: readonly string[]
  /** The key in the order of an index that begins with the scope; compaction reads rows in this order. */
  readonly readOrder: readonly string[]
  /** A summary of the rows in the footer: a JSON list under a key, made by a DuckDB statement. */
  readonly summary: { readonly key: string; readonly sql: (source: string) => string } | null
  /** Merges a row of the file and a later one of the relational store. */
  readonly merge: (cold: RecordRow, hot: RecordRow) => RecordRow
}

const CANDLES: RecordTable = {
  dataset: 'candles',
  schema: 'candles.v1',
  columns: STORED_CANDLE_COLUMNS,
  key: ['market_ticker', 'period_interval', 'end_period_ts'],
  readOrder: ['period_interval', 'end_period_ts', 'market_ticker'],
  summary: { key: CANDLE_SPANS_KEY, sql: candleSpansSql },
  // A candle that is written again replaces the earlier one.
  merge: (_cold, hot) => hot,
}

const OBSERVATIONS: RecordTable = {
  dataset: 'observations',
  schema: 'observations.v1',
  columns: STORED_OBSERVATION_COLUMNS,
  key: ['observed_at', 'observation_type'],
  readOrder: ['observed_at', 'observation_type'],
  summary: null,
  merge(cold, hot) {
    // The lake does not store the origin of single values, so every value counts as one of the row's source.
    const [a, b] = [asObservation(cold), asObservation(hot)]
    return { ...mergeObservation({ observation: a, filled: {} }, { observation: b, filled: {} }).observation }
  },
}

export const RECORD_TABLES: readonly RecordTable[] = [CANDLES, OBSERVATIONS]

/** Only for a row that was read with all columns of an observation. */
function asObservation(row: RecordRow): StoredObservation {
  return row as unknown as StoredObservation
}
