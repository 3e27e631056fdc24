// The Iowa Environmental Mesonet's archive of METAR and SPECI reports (asos.py). Routine and special reports are requested
// separately, because the archived texts lack the keyword. One request a second, as the archive asks.

import type { Observation, ObservationType } from '../../../shared/observation.ts'
import type { Station } from '../../../shared/stations.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import { collectRows, type ObservationRows } from '../observation-fetch.ts'
import { type ClientOptions, UpstreamHttp } from '../../upstream/upstream-http.ts'
import { IEM, parseAsosCsv } from './parse.ts'

/** The limit applies to an address over all services of the archive: pass one `budget` to all of their clients. */
export const IEM_RATE = { burst: 1, intervalMs: 1000 } as const

/** `report_type` of asos.py. */
const REPORT_TYPES = [
  { type: 'METAR', parameter: 3 },
  { type: 'SPECI', parameter: 4 },
] as const satisfies readonly { type: ObservationType; parameter: number }[]

export class IemClient extends UpstreamHttp {
  constructor(options: ClientOptions) {
    super({ ...options, name: IEM, rate: IEM_RATE })
  }

  /** Every report of one station in a window of at most a month, routine and special. Throws `UpstreamError` if either request fails. */
  async reports(station: Station, window: TimeWindow, signal?: AbortSignal): Promise<ObservationRows> {
    const rows: Observation[] = []
    const rejected = { malformed: 0, synthetic: 0, other_report: 0, other_station: 0 }
    for (const { type, parameter } of REPORT_TYPES) {
      const path = `/cgi-bin/request/asos.py?${queryOf(station, window, parameter)}`
      const body = await this.fetchBody({ path, signal })
      const collected = await collectRows(IEM, parseAsosCsv(body.toString('utf8'), station, type))
      rows.push(...collected.rows)
      rejected.malformed += collected.rejected.malformed
      rejected.synthetic += collected.rejected.synthetic
      rejected.other_report += collected.rejected.other_report
      rejected.other_station += collected.rejected.other_station
    }
    return { rows, rejected }
  }
}

function queryOf({ code }: Station, { fromMs, toMs }: TimeWindow, reportType: number): string {
  const parameters = new URLSearchParams({
    station: code,
    data: 'all',
    sts: secondsIso(fromMs),
    ets: secondsIso(toMs),
    tz: 'UTC',
    format: 'onlycomma',
    latlon: 'no',
    elev: 'no',
    missing: 'M',
    trace: 'T',
    direct: 'no',
    report_type: String(reportType),
  })
  return parameters.toString()
}

/** `2026-01-01T00:00:00Z`. */
function secondsIso(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
