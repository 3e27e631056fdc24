// The state of every source from the store, one row per source, summarizing its scopes. The schedule's metrics have what only the
// running process knows (the next run).

import { readCursorStatus } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import { SOURCE_NAMES, type SourceName } from './source.ts'

/** Instants are milliseconds since the epoch, null for never. */
export interface SourceStatus {
  readonly source: SourceName
  readonly scopeCount: number
  readonly rowCount: bigint
  readonly lastSuccessAtMs: number | null
  /** Time since the oldest scope's last success; null if a scope never succeeded. */
  readonly lagMs: number | null
  /** Gaps between completed windows, over all scopes. */
  readonly gapCount: number
  /** Scopes whose last run failed. */
  readonly failingCount: number
  readonly lastFailure: string | null
}

/** Every source, including those that never ran. */
export async function readSourceStatus(postgres: Postgres, nowMs: number): Promise<readonly SourceStatus[]> {
  const cursors = await readCursorStatus(postgres)
  return SOURCE_NAMES.map((source) => {
    const scopes = cursors.filter((cursor) => cursor.source === source)
    const successes = scopes.map(({ last_success_at }) => last_success_at)
    const known = successes.filter((ms) => ms !== null)
    const failing = scopes.filter(({ consecutive_failures }) => consecutive_failures > 0)
    const latest = failing.toSorted((a, b) => (b.last_failure_at ?? 0) - (a.last_failure_at ?? 0))[0]
    return {
      source,
      scopeCount: scopes.length,
      rowCount: scopes.reduce((sum, { rows_written }) => sum + rows_written, 0n),
      lastSuccessAtMs: known.length === 0 ? null : Math.max(...known),
      lagMs: known.length === 0 || known.length < scopes.length ? null : nowMs - Math.min(...known),
      gapCount: scopes.reduce((sum, { window_count }) => sum + Math.max(window_count - 1, 0), 0),
      failingCount: failing.length,
      lastFailure: latest?.last_failure ?? null,
    }
  })
}
