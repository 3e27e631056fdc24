// How invented records are told from real ones in a relational store: by a tag of their series. Loading the generator is
// not needed to ask.

import { instantValue, sql } from '../../shared/sql/statement.ts'
import type { Postgres } from '../storage/postgres.ts'

/** One of the tags of every invented series. */
export const SAMPLE_TAG = 'Sample'
/** The sample is looked at as if on its last day's end, in every version of it; earlier ones have no tag. */
export const SAMPLE_SEEN_AT_MS = Date.UTC(2026, 6, 4)

const SAMPLE_SERIES = sql`
  SELECT count(*)::int AS count FROM series
  WHERE tags @> to_jsonb(${SAMPLE_TAG}) OR last_seen_at = ${instantValue(SAMPLE_SEEN_AT_MS)}`

/** Whether the store holds invented records. Rejects with a StoreError while it is away. */
export async function holdsSampleRecords(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.run<{ readonly count: number }>(SAMPLE_SERIES)
  return (row?.count ?? 0) > 0
}

/** @throws {Error} for people: what is collected must not come to lie among invented records */
export async function refuseSampleStore(postgres: Postgres): Promise<void> {
  if (!(await holdsSampleRecords(postgres))) return
  throw new Error(
    'the relational store holds the sample records, which are invented: collect into another one (--data-dir, DATABASE_URL)',
  )
}
