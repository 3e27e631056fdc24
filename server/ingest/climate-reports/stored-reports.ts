// Climate reports as a step's result, for the live feed and the archive: matched with the stations. The store classifies them among
// all reports of their date.

import type { Station } from '../../../shared/stations.ts'
import { type ClimateReportRow, writeClimateReports } from '../../storage/climate-store.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import { withoutFuture } from '../future-reports.ts'
import type { FetchedRows } from '../source.ts'
import type { ParsedClimateText } from './parse.ts'
import { classifyReports, matchStations } from './station-reports.ts'

/** The reports of known stations. Reports of other places are not problems; unreadable and future ones are. */
export function fetchedReports(
  parsed: ParsedClimateText,
  stations: readonly Station[],
  source: ClimateReportRow['source'],
  { completed, nowMs }: { readonly completed: TimeWindow | null; readonly nowMs: number },
): FetchedRows & { readonly aheadCount: number } {
  const byTime = withoutFuture(
    parsed.reports,
    ({ issued_at }) => issued_at,
    ({ product_id }) => product_id,
    nowMs,
  )
  const matched = matchStations(byTime.told, stations, source)
  return {
    write: (transaction) => writeClimateReports(transaction, matched, classifyReports),
    problems: [...parsed.errors, ...byTime.problems],
    aheadCount: byTime.aheadCount,
    completed,
  }
}
