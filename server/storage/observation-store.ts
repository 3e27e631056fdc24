// Recent observations. Several sources report one observation; later copies are fuller, corrections replace. The ingest passes the
// merge rule as a function. This store makes sure that it is applied to the current row, even if two processes write the same
// observation at once.

import { isDeepStrictEqual } from 'node:util'
import { STORED_OBSERVATION_COLUMNS, type StoredObservation } from '../../shared/sql/observation-queries.ts'
import { assignments, bulkStatement, oneOfEachKey, recordset, writeBatches } from './bulk-write.ts'
import type { StoreTransaction } from './store-transaction.ts'

/** An observation and the ingest's record of where its values came from, any JSON object. */
export interface ObservationRecord {
  readonly observation: StoredObservation
  readonly filled: object
}

const COLUMNS = { ...STORED_OBSERVATION_COLUMNS, filled: 'jsonb' } as const
const NAMES = Object.keys(COLUMNS)
const KEY = 'station_code, observed_at, observation_type'
const LIST = NAMES.join(', ')
const WRITTEN = recordset(COLUMNS)

// Sorted by key, so that two writers of the same rows lock them in the same order.
const INSERT = `
  INSERT INTO observations (${LIST}) SELECT ${LIST} FROM ${WRITTEN} ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO NOTHING RETURNING ${KEY}`
const LOCK_STORED = `
  SELECT ${NAMES.map((name) => `observations.${name}`).join(', ')} FROM observations
  JOIN (SELECT ${KEY} FROM ${WRITTEN}) written USING (${KEY}) ORDER BY ${KEY} FOR UPDATE OF observations`
const UPDATE = `
  INSERT INTO observations (${LIST}) SELECT ${LIST} FROM ${WRITTEN} ORDER BY ${KEY}
  ON CONFLICT (${KEY}) DO UPDATE SET ${assignments(NAMES)}, written_at = clock_timestamp()`

/**
 * Inserts new observations, merges the others with the stored ones, and returns how many are new or changed. `merge` combines two
 * records of one key, in any order, either of which may be the result of earlier merges.
 */
export async function writeObservations<R extends ObservationRecord>(
  transaction: StoreTransaction,
  records: readonly R[],
  merge: (stored: R, incoming: R) => R,
): Promise<number> {
  let changedCount = 0
  for (const batch of writeBatches(oneOfEachKey(records, ({ observation }) => keyOf(observation), merge))) {
    const inserted = await transaction.run<KeyColumns>(bulkStatement(INSERT, batch.map(rowOf), COLUMNS))
    changedCount += inserted.length
    if (inserted.length < batch.length) changedCount += await mergeStored(transaction, batch, inserted, merge)
  }
  if (changedCount > 0) transaction.markChanged('observations')
  return changedCount
}

type KeyColumns = Pick<StoredObservation, 'station_code' | 'observed_at' | 'observation_type'>
type Row = StoredObservation & { readonly filled: object }

async function mergeStored<R extends ObservationRecord>(
  transaction: StoreTransaction,
  batch: readonly R[],
  inserted: readonly KeyColumns[],
  merge: (stored: R, incoming: R) => R,
): Promise<number> {
  const isNew = new Set(inserted.map(keyOf))
  const known = new Map(
    batch.map((record) => [keyOf(record.observation), record] as const).filter(([key]) => !isNew.has(key)),
  )
  const rows = await transaction.run<Row>(bulkStatement(LOCK_STORED, [...known.values()].map(rowOf), COLUMNS))
  const changed = rows.flatMap(({ filled, ...observation }) => {
    const stored = { observation, filled } as unknown as R
    const incoming = known.get(keyOf(observation))
    const merged = incoming === undefined ? stored : merge(stored, incoming)
    return isDeepStrictEqual(rowOf(merged), rowOf(stored)) ? [] : [merged]
  })
  if (changed.length > 0) await transaction.run(bulkStatement(UPDATE, changed.map(rowOf), COLUMNS))
  return changed.length
}

function rowOf({ observation, filled }: ObservationRecord): Row {
  return { ...observation, filled }
}

function keyOf(row: KeyColumns): string {
  return `${row.station_code} ${row.observed_at} ${row.observation_type}`
}
