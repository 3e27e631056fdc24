// Reopens the windows that a verification found missing, and no others: the next backfill over these dates requests them again.

import type { SourceName } from '../ingest/source.ts'
import { reopenCandles } from '../storage/candle-window-store.ts'
import { reopenWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { ScopeReport } from './finding.ts'

/** Reopens the windows of a scope in the sources that have them; returns how many. Those of candles are of the markets, too. */
export async function repairScope(
  postgres: Postgres,
  { scope, findings }: ScopeReport,
  sources: readonly SourceName[],
): Promise<number> {
  const opened = findings.flatMap(({ of, window }) => (window === null ? [] : [{ ticker: of, ...window }]))
  if (opened.length === 0) return 0
  await postgres.transaction(async (transaction) => {
    if (sources.includes('exchange-candles')) await reopenCandles(transaction, opened)
    for (const source of sources) {
      for (const window of opened) await reopenWindow(transaction, { source, scope }, window)
    }
  })
  return opened.length
}
