// Distinguishes generated from real records in a relational store, by a tag of their series. The check does not load the generator.

import { instantValue, sql } from '../../shared/sql/statement.ts'
import type { Postgres } from '../storage/postgres.ts'

/** One of the tags of every invented series. */
export const SAMPLE_TAG = 'Sample'
/** The sample is viewed as of its last day's end, in every version of it; earlier versions have no tag. */
export const SAMPLE_SEEN_AT_MS = Date.UTC(2026, 6, 4)

const SAMPLE_SERIES = sql`
  SELECT count(*)::int AS count FROM series
  WHERE tags @> to_jsonb(${SAMPLE_TAG}) OR last_seen_at = ${instantValue(SAMPLE_SEEN_AT_MS)}`

/** Whether the store contains generated records. Rejects with a StoreError while it is unavailable. */
export async function holdsSampleRecords(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.run<{ readonly count: number }>(SAMPLE_SERIES)
  return (row?.count ?? 0) > 0
}

/** @throws {Error} for users: collected data must not be mixed with generated records */
export async function refuseSampleStore(postgres: Postgres): Promise<void> {
  if (!(await holdsSampleRecords(postgres))) return
  throw new Error(
    'the relational store holds the sample records, which are invented: collect into another one (--data-dir, DATABASE_URL)',
  )
}
