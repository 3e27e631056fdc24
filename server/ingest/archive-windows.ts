// What the archives have in common. Their past is requested month by month (UTC). Polls look back a few days, so that a short
// outage needs no backfill. A month's window is complete only when no more data can arrive in it; until then it is requested again.

import { findStation, type Station } from '../../shared/stations.ts'
import { MS_PER_DAY } from '../../shared/utc-date.ts'
import { missingWindows, type TimeWindow } from '../storage/cursor-store.ts'
import type {
  FetchedRows,
  IngestSource,
  IngestStep,
  SourceContext,
  SourceHistory,
  SourceName,
} from './source.ts'

/** Days that the polls of the archives look back, so that an outage of a few days needs no backfill. */
const INGEST_ARCHIVE_POLL_DAYS = 3

/** Splits a span at every month's beginning (UTC). */
export function monthsOf({ fromMs, toMs }: TimeWindow): TimeWindow[] {
  return splitAt(fromMs, toMs, (date) => Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 1))
}

/** Splits a span on a grid of days since the epoch (UTC), so that a repeated backfill requests the same windows. */
export function daysOf({ fromMs, toMs }: TimeWindow, days = 1): TimeWindow[] {
  const widthMs = days * MS_PER_DAY
  return splitAt(fromMs, toMs, (date) => (Math.floor(date.getTime() / widthMs) + 1) * widthMs)
}

/** Splits a span at every year's beginning (UTC). */
export function yearsOf({ fromMs, toMs }: TimeWindow): TimeWindow[] {
  return splitAt(fromMs, toMs, (date) => Date.UTC(date.getUTCFullYear() + 1, 0, 1))
}

function splitAt(fromMs: number, toMs: number, nextCut: (date: Date) => number): TimeWindow[] {
  const windows: TimeWindow[] = []
  for (let start = fromMs; start < toMs;) {
    const end = Math.min(nextCut(new Date(start)), toMs)
    windows.push({ fromMs: start, toMs: end })
    start = end
  }
  return windows
}

/** The part of a window in which no more data can arrive, or null if there is none. */
export function settledPart(window: TimeWindow, settleMs: number, nowMs: number): TimeWindow | null {
  // Whole days, so that windows that are requested again begin at midnight.
  const settledToMs = Math.floor((nowMs - settleMs) / MS_PER_DAY) * MS_PER_DAY
  const toMs = Math.min(window.toMs, settledToMs)
  return toMs > window.fromMs ? { fromMs: window.fromMs, toMs } : null
}

/** The past of an archive that is requested station by station. `fetch` fetches a window of one station. */
export function stationHistory(
  stations: readonly Station[],
  windows: SourceHistory['windows'],
  fetch: (station: Station, window: TimeWindow, context: SourceContext) => Promise<FetchedRows>,
): SourceHistory {
  return {
    scopes: async () => stations.map(({ code }) => code),
    windows,
    step: (scope, window, context) => ({
      scope,
      title: `${scope} ${windowTitle(window)}`,
      async fetch() {
        const station = stations.find(({ code }) => code === scope) ?? findStation(scope)
        if (station === undefined) throw new RangeError(`there is no station ${scope}`)
        return await fetch(station, window, context)
      },
    }),
  }
}

/** An archive as a source. Polls use `polled` instead of `history`. */
export function archiveSource(
  name: SourceName,
  { client, intervalMs }: { readonly client: Pick<IngestSource, 'close'>; readonly intervalMs: number },
  history: SourceHistory,
  polled = history,
): IngestSource {
  return {
    name,
    intervalMs,
    history,
    poll: (context) => pollRecentDays(name, polled, context),
    close: () => client.close(),
  }
}

/** The steps of an archive's poll: the missing windows of the last days, scope by scope. */
async function* pollRecentDays(
  source: SourceName,
  history: SourceHistory,
  context: SourceContext,
): AsyncGenerator<IngestStep, void, void> {
  const nowMs = context.clock.nowMs()
  const todayMs = Math.floor(nowMs / MS_PER_DAY) * MS_PER_DAY
  const span = { fromMs: todayMs - INGEST_ARCHIVE_POLL_DAYS * MS_PER_DAY, toMs: todayMs + MS_PER_DAY }
  for (const scope of await history.scopes(context)) {
    const missing = await missingWindows(context.postgres, { source, scope }, span, nowMs)
    for (const window of missing.flatMap((part) => history.windows(part))) {
      yield history.step(scope, window, context)
    }
  }
}

/** `2026-01-01 to 2026-02-01`, the latter exclusive. */
export function windowTitle({ fromMs, toMs }: TimeWindow): string {
  return `${titleOf(fromMs)} to ${titleOf(toMs)}`
}

function titleOf(ms: number): string {
  const iso = new Date(ms).toISOString()
  return ms % MS_PER_DAY === 0 ? iso.slice(0, 10) : `${iso.slice(0, 16)}Z`
}
