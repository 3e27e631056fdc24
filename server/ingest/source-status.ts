// The state of every source from the store, one row per source, summarizing its scopes. The schedule's metrics have what only the
// running process knows (the next run).

import { readCursorStatus } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import { SOURCE_NAMES } from './source.ts'

export type SourceStatus = Awaited<ReturnType<typeof readSourceStatus>>[number]

/** Every source, including those that never ran. Instants are milliseconds since the epoch, null for never. */
export async function readSourceStatus(postgres: Postgres, nowMs: number) {
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
      /** Time since the oldest scope's last success; null if a scope never succeeded. */
      lagMs: known.length === 0 || known.length < scopes.length ? null : nowMs - Math.min(...known),
      /** Gaps between completed windows, over all scopes. */
      gapCount: scopes.reduce((sum, { window_count }) => sum + Math.max(window_count - 1, 0), 0),
      /** Scopes whose last run failed. */
      failingCount: failing.length,
      lastFailure: latest?.last_failure ?? null,
    }
  })
}
