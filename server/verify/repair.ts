// Reopens the windows that a verification found missing, and no others: the next backfill over these dates requests them again.

import type { SourceName } from '../ingest/source.ts'
import { reopenCandles } from '../storage/candle-window-store.ts'
import { reopenWindow, type TimeWindow } from '../storage/cursor-store.ts'
import type { Postgres } from '../storage/postgres.ts'
import type { ScopeReport } from './finding.ts'

/** Reopens the windows of a series' markets; returns how many. */
export async function repairCandles(postgres: Postgres, report: ScopeReport): Promise<number> {
  const opened = report.findings.flatMap(({ of, window }) =>
    window === null ? [] : [{ ticker: of, ...window }],
  )
  if (opened.length === 0) return 0
  await postgres.transaction(async (transaction) => {
    await reopenCandles(transaction, opened)
    for (const window of opened) {
      await reopenWindow(transaction, { source: 'exchange-candles', scope: report.scope }, window)
    }
  })
  return opened.length
}

/** Reopens the windows of a scope in the sources that have them; returns how many. */
export async function repairScope(
  postgres: Postgres,
  report: ScopeReport,
  sources: readonly SourceName[],
): Promise<number> {
  const opened = report.findings.flatMap(({ window }): TimeWindow[] => (window === null ? [] : [window]))
  if (opened.length === 0) return 0
  await postgres.transaction(async (transaction) => {
    for (const source of sources) {
      for (const window of opened) await reopenWindow(transaction, { source, scope: report.scope }, window)
    }
  })
  return opened.length
}
