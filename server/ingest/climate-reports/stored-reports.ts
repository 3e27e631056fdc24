// Climate reports as a step's result, from the live feed and from the archive alike: matched with the stations, and
// classified among all reports of their date by the store.

import type { Station } from '../../../shared/stations.ts'
import { writeClimateReports } from '../../storage/climate-store.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { FetchedRows } from '../source.ts'
import type { ParsedClimateText } from './parse.ts'
import { classifyReports, matchStations, type StationReport } from './station-reports.ts'

/** The reports of known stations; reports of other places are no problem, unreadable ones are. */
export function fetchedReports(
  parsed: ParsedClimateText,
  stations: readonly Station[],
  source: StationReport['source'],
  completed: TimeWindow | null,
): FetchedRows {
  const { matched } = matchStations(parsed.reports, stations, source)
  return {
    write: (transaction) => writeClimateReports(transaction, matched, classifyReports),
    problems: parsed.errors.map(({ message }) => message),
    ...(completed === null ? {} : { completed }),
  }
}
