// Recent observations. Several sources report one observation, later copies are fuller, corrections replace: which
// value wins is the ingest's rule and comes in as a function. This store only sees to it that the rule is applied to
// what is really there, also when two processes write the same observation at once.

import { STORE_READ_BATCH_ROWS } from '../../shared/limits.ts'
import { keysetPages } from '../../shared/sql/keyset-pages.ts'
import {
  observationRead,
  type ObservationSelection,
  STORED_OBSERVATION_COLUMNS,
  type StoredObservation,
} from '../../shared/sql/observation-queries.ts'
import { assignments, bulkStatement, recordset, writeBatches } from './bulk-write.ts'
import type { ReadOptions } from './candle-store.ts'
import type { Postgres } from './postgres.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** What is kept of two reports with one key. Returning `stored` itself leaves the row alone. */
export type MergeObservations = (stored: StoredObservation, incoming: StoredObservation) => StoredObservation

export interface ObservationChanges {
  readonly insertedCount: number
  readonly updatedCount: number
}

const KEY = 'station_code, observed_at, observation_type'
const COLUMNS = STORED_OBSERVATION_COLUMNS
const COLUMN_NAMES = Object.keys(COLUMNS) as (keyof StoredObservation)[]
const LIST = COLUMN_NAMES.join(', ')
const WRITTEN = recordset('written', COLUMNS)

// Sorted by key, so that two writers of the same rows wait for one another in one order.
const INSERT = `
  INSERT INTO observations (${LIST}) SELECT ${LIST} FROM ${WRITTEN} ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO NOTHING RETURNING ${KEY}`
const LOCK_STORED = `
  SELECT ${LIST} FROM observations JOIN (SELECT ${KEY} FROM ${WRITTEN}) written USING (${KEY})
  ORDER BY ${KEY} FOR UPDATE OF observations`
const UPDATE = `
  INSERT INTO observations (${LIST}) SELECT ${LIST} FROM ${WRITTEN} ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO UPDATE SET ${assignments(COLUMN_NAMES)}, written_at = clock_timestamp()`

/** Inserts new observations and merges the others with what is stored. */
export async function writeObservations(
  transaction: StoreTransaction,
  observations: readonly StoredObservation[],
  merge: MergeObservations,
): Promise<ObservationChanges> {
  let insertedCount = 0
  let updatedCount = 0
  for (const batch of writeBatches(mergeCopies(observations, merge))) {
    const inserted = await transaction.run<KeyRow>(bulkStatement(INSERT, batch, COLUMNS))
    insertedCount += inserted.length
    if (inserted.length < batch.length) updatedCount += await mergeStored(transaction, batch, inserted, merge)
  }
  if (insertedCount + updatedCount > 0) transaction.markChanged('observations')
  return { insertedCount, updatedCount }
}

/** The hot observations of a range by (observed_at, station_code, observation_type), in batches. */
export function readObservations(
  postgres: Postgres,
  selection: ObservationSelection,
  options: ReadOptions = {},
): AsyncGenerator<readonly StoredObservation[], void, void> {
  return keysetPages(
    (statement) => postgres.run(statement, { signal: options.signal }),
    observationRead(selection),
    { batchUnits: STORE_READ_BATCH_ROWS, ...options },
  )
}

type KeyRow = Pick<StoredObservation, 'station_code' | 'observed_at' | 'observation_type'>

async function mergeStored(
  transaction: StoreTransaction,
  batch: readonly StoredObservation[],
  inserted: readonly KeyRow[],
  merge: MergeObservations,
): Promise<number> {
  const isNew = new Set(inserted.map(keyOf))
  const known = new Map(batch.filter((row) => !isNew.has(keyOf(row))).map((row) => [keyOf(row), row]))
  const stored = await transaction.run<StoredObservation>(
    bulkStatement(LOCK_STORED, [...known.values()], COLUMNS),
  )
  const changed = stored.flatMap((row) => {
    const incoming = known.get(keyOf(row))
    const merged = incoming === undefined ? row : merge(row, incoming)
    return isSame(merged, row) ? [] : [merged]
  })
  if (changed.length > 0) await transaction.run(bulkStatement(UPDATE, changed, COLUMNS))
  return changed.length
}

/** Several reports with one key in one call become one, in the order given. */
function mergeCopies(
  observations: readonly StoredObservation[],
  merge: MergeObservations,
): StoredObservation[] {
  const byKey = new Map<string, StoredObservation>()
  for (const incoming of observations) {
    const known = byKey.get(keyOf(incoming))
    byKey.set(keyOf(incoming), known === undefined ? incoming : merge(known, incoming))
  }
  return [...byKey.values()]
}

function isSame(a: StoredObservation, b: StoredObservation): boolean {
  return a === b || COLUMN_NAMES.every((name) => a[name] === b[name])
}

function keyOf(row: KeyRow): string {
  return `${row.station_code} ${row.observed_at} ${row.observation_type}`
}
