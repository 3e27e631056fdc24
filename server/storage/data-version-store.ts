// How current the store's datasets and this replica's copy of the lake are: the numbers behind cache validators, and
// the record of the last synchronization that `/health` reports.

import { StatementBuilder } from '../../shared/sql/statement.ts'
import type { Postgres } from './postgres.ts'
import type { DatasetName, StoreTransaction } from './store-transaction.ts'

export interface DataVersion {
  readonly dataset: DatasetName
  /** Rises with every change. */
  readonly version: bigint
  /** Milliseconds since the epoch, null before the first change. */
  readonly changed_at: number | null
}

/** A replica's last synchronization of its lake directory. */
export interface LakeSync {
  readonly replica: string
  /** Milliseconds since the epoch, null before the first one that succeeded. */
  readonly last_sync: number | null
  readonly file_count: number
  /** What the synchronization needs to resume. */
  readonly state: unknown
}

/** The versions of all datasets, by name. */
export function readDataVersions(postgres: Postgres, signal?: AbortSignal): Promise<readonly DataVersion[]> {
  return postgres.run<DataVersion>(
    { text: 'SELECT dataset, version, changed_at FROM data_versions ORDER BY dataset', parameters: [] },
    { signal },
  )
}

export async function readLakeSync(postgres: Postgres, replica: string): Promise<LakeSync | undefined> {
  const [row] = await postgres.run<LakeSync>({
    text: 'SELECT replica, last_sync, file_count, state FROM lake_syncs WHERE replica = $1::text',
    parameters: [replica],
  })
  return row
}

export async function writeLakeSync(transaction: StoreTransaction, sync: LakeSync): Promise<void> {
  const statement = new StatementBuilder()
  const lastSync = sync.last_sync === null ? 'NULL' : statement.addInstant(sync.last_sync)
  const values = [
    statement.add(sync.replica, 'text'),
    lastSync,
    statement.add(sync.file_count, 'int4'),
    `${statement.add(JSON.stringify(sync.state), 'text')}::jsonb`,
  ]
  await transaction.run(
    statement.build(
      `INSERT INTO lake_syncs (replica, last_sync, file_count, state) VALUES (${values.join(', ')})` +
        ` ON CONFLICT (replica) DO UPDATE SET last_sync = excluded.last_sync, file_count = excluded.file_count,` +
        ` state = excluded.state`,
    ),
  )
}
