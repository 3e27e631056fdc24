// Checks whether a station's observations are complete by its schedule: one routine report (METAR) an hour, around the clock.

import { HOURS_PER_DAY, MS_PER_DAY, MS_PER_HOUR, utcDateOf } from '../../shared/utc-date.ts'
import { yearsOf } from '../ingest/archive-windows.ts'
import type { Finding, ScopeReport, VerifyContext } from './finding.ts'
import { mergedRows } from './merged-rows.ts'

/** Counts the routine reports of every UTC day of the span that is over. */
export async function checkObservations(context: VerifyContext, station: string): Promise<ScopeReport> {
  const { span, nowMs } = context
  const firstMs = Math.floor(span.fromMs / MS_PER_DAY) * MS_PER_DAY
  const endMs = Math.floor(Math.min(span.toMs, nowMs) / MS_PER_DAY) * MS_PER_DAY
  const hours = await reportedHours(context, station, firstMs, endMs)
  const findings: Finding[] = []
  let dayCount = 0
  for (let dayMs = firstMs; dayMs < endMs; dayMs += MS_PER_DAY) {
    dayCount += 1
    const missing = Array.from({ length: HOURS_PER_DAY }, (_, hour) => hour).filter(
      (hour) => !hours.has(dayMs + hour * MS_PER_HOUR),
    )
    if (missing.length === 0) continue
    const which =
      missing.length === HOURS_PER_DAY
        ? ''
        : `, missing ${missing.map((hour) => String(hour).padStart(2, '0')).join(' ')}`
    findings.push({
      of: station,
      text: `${utcDateOf(dayMs)}: ${HOURS_PER_DAY - missing.length} of ${HOURS_PER_DAY} hourly reports${which}`,
      window: { fromMs: dayMs, toMs: dayMs + MS_PER_DAY },
    })
  }
  return { scope: station, dayCount, findings }
}

async function reportedHours(
  context: VerifyContext,
  scope: string,
  fromMs: number,
  toMs: number,
): Promise<ReadonlySet<number>> {
  const hours = new Set<number>()
  const columns = "epoch_ms(date_trunc('hour', observed_at))::DOUBLE AS hour_ms, observation_type"
  for (const year of yearsOf({ fromMs, toMs })) {
    context.signal.throwIfAborted()
    const period = String(new Date(year.fromMs).getUTCFullYear())
    for (const row of await mergedRows(context, { dataset: 'observations', scope, period, columns })) {
      if (row['observation_type'] === 'METAR') hours.add(Number(row['hour_ms']))
    }
  }
  return hours
}
