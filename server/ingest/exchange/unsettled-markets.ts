// Markets that have closed and whose result was not final when last seen: their dates are requested again until it is.

import { instantValue, sql } from '../../../shared/sql/statement.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { SourceContext } from '../source.ts'

/** The status after which a market does not change any more. */
export const FINAL_STATUS = 'finalized'

/** From the first to the last close of such markets of a series within a window; null if there are none. */
export async function unsettledCloses(
  { postgres, clock, signal }: SourceContext,
  seriesTicker: string,
  { fromMs, toMs }: TimeWindow,
): Promise<TimeWindow | null> {
  const endMs = Math.min(toMs, clock.nowMs())
  const [row] = await postgres.run<{ readonly first: number | null; readonly last: number | null }>(
    sql`SELECT min(close_time) AS first, max(close_time) AS last FROM markets
      WHERE series_ticker = ${seriesTicker} AND status <> ${FINAL_STATUS}
        AND close_time >= ${instantValue(fromMs)} AND close_time < ${instantValue(endMs)}`,
    { signal },
  )
  if (row === undefined || row.first === null || row.last === null) return null
  return { fromMs: row.first, toMs: row.last + 1 }
}
