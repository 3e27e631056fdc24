// The age of the newest rows in the store. It shows whether a feed delivers, not only whether it answers: a feed that always
// returns an empty list succeeds every time, but falls behind here.

import { sql } from '../../shared/sql/statement.ts'
import { withinTime } from '../../shared/within-time.ts'
import type { Postgres } from './postgres.ts'

export interface NewestRow {
  /** `station`: observations of one station from any source; else the dataset. */
  readonly kind: 'station' | 'observations' | 'candles' | 'climate'
  /** The station, or the source of the rows. */
  readonly name: string
  /** Seconds since the epoch of the time that the row describes (climate: issued). */
  readonly atS: number
}

// If all rows of a station have moved to the lake, their end is the newest known time.
const NEWEST = sql`
  SELECT 'station' AS kind, name, max(at_s) AS "atS" FROM (
    SELECT station_code AS name, extract(epoch FROM max(observed_at))::float8 AS at_s
    FROM observations GROUP BY station_code
    UNION ALL
    SELECT scope, extract(epoch FROM max(cut_over))::float8 FROM lake_manifest
    WHERE dataset = 'observations' GROUP BY scope
  ) AS stations GROUP BY name
  UNION ALL
  SELECT 'observations', source, extract(epoch FROM max(observed_at))::float8 FROM observations GROUP BY source
  UNION ALL
  SELECT 'candles', 'exchange', extract(epoch FROM max(end_period_ts))::float8 FROM candles
  WHERE period_interval = 1 HAVING max(end_period_ts) IS NOT NULL
  UNION ALL
  SELECT 'climate', source, extract(epoch FROM max(coalesce(issued_at, observation_date::timestamptz)))::float8
  FROM climate_records GROUP BY source
  ORDER BY 1, 2`

const REUSE_MS = 15_000
const WAIT_MS = 2_000

/** Queries the store at most every 15 s. Resolves to an empty list while the store is unavailable. */
export function newestRowsOf(postgres: Postgres): () => Promise<readonly NewestRow[]> {
  let askedMs = -Infinity
  let answer: Promise<readonly NewestRow[]> = Promise.resolve([])
  return async () => {
    if (performance.now() - askedMs > REUSE_MS) {
      askedMs = performance.now()
      answer = postgres.run<NewestRow>(NEWEST).catch(() => [])
    }
    return (await withinTime(answer, WAIT_MS)) ?? []
  }
}
