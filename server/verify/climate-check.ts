// Checks whether a station's final climate reports are complete: one for every date, due at 18:00 UTC on the next day.

import { groupedBy } from '../../shared/grouped-by.ts'
import { CLIMATE_FINAL_DUE_MS } from '../../shared/limits.ts'
import { addDays, MS_PER_DAY, utcDateOf, utcDatesBetween } from '../../shared/utc-date.ts'
import { readClimateDates } from '../storage/climate-store.ts'
import type { Finding, ScopeReport, VerifyContext } from './finding.ts'

/** Reports every date of the span whose final report is overdue. A correction counts as final. */
export async function checkClimateReports(
  { postgres, span, nowMs }: VerifyContext,
  station: string,
): Promise<ScopeReport> {
  const from = utcDateOf(span.fromMs)
  const lastDue = addDays(utcDateOf(nowMs - CLIMATE_FINAL_DUE_MS), -1)
  const last = utcDateOf(span.toMs - 1)
  const to = last < lastDue ? last : lastDue
  if (to < from) return { scope: station, dayCount: 0, findings: [] }
  const records = await readClimateDates(postgres, station, from, to)
  const byDate = groupedBy(records, ({ observation_date }) => observation_date)
  const dates = utcDatesBetween(from, to)
  const findings = dates.flatMap((date): Finding[] => {
    const stored = (byDate.get(date) ?? []).map(({ report_type }) => report_type)
    if (stored.includes('final') || stored.includes('correction')) return []
    const text = `${date}: the final climate report is overdue, stored: ${stored.join(' and ') || 'nothing'}`
    const fromMs = Date.parse(date)
    return [{ of: station, text, window: { fromMs, toMs: fromMs + MS_PER_DAY } }]
  })
  return { scope: station, dayCount: dates.length, findings }
}
