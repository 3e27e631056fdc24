// The live weather of all stations, every few seconds. Normally one conditional request for two hours. After an outage it requests
// the missed hours, in as many requests as the feed's limit of entries needs. The archives fill in hours that the feed no longer
// has.

import { AWC_ENTRIES_MAX, AWC_HOURS_MAX, AWC_REPORTS_PER_STATION_HOUR_MAX } from '../../../shared/limits.ts'
import type { Observation } from '../../../shared/observation.ts'
import { MS_PER_HOUR } from '../../../shared/utc-date.ts'
import { completedWindows } from '../../storage/cursor-store.ts'
import { fetchedObservations, toldRows } from '../fetched-observations.ts'
import type { FetchedRows, IngestSource, StationSourceOptions } from '../source.ts'
import type { Validators } from '../../upstream/upstream-http.ts'
import type { AviationWeatherClient } from './client.ts'

const NAME = 'aviation-weather'
const LIVE = 'live'
const HOURS_MIN = 2
/** The hours of a single station that fit into one response. */
const HOURS_MAX = Math.min(Math.floor(AWC_ENTRIES_MAX / AWC_REPORTS_PER_STATION_HOUR_MAX), AWC_HOURS_MAX)

export function aviationWeatherSource(options: StationSourceOptions<AviationWeatherClient>): IngestSource {
  const { client, stations, intervalMs } = options
  // Reports of the last responses that are stored, so that an unchanged report is not written every few seconds.
  let stored: ReadonlySet<string> = new Set()
  let completedToMs: number | undefined
  // Of the last poll, if it was one request whose rows are stored: otherwise "not modified" would hide rows that are not.
  let last: { readonly hours: number; readonly validators: Validators | undefined } | undefined

  async function fetchHours(hours: number, nowMs: number, signal: AbortSignal): Promise<FetchedRows> {
    const perRequest = Math.max(Math.floor(AWC_ENTRIES_MAX / (hours * AWC_REPORTS_PER_STATION_HOUR_MAX)), 1)
    const rows: Observation[] = []
    const problems: string[] = []
    let isUnchanged = true
    let aheadCount = 0
    const validators = last?.hours === hours ? last.validators : undefined
    last = undefined
    let answered: Validators | undefined
    for (let at = 0; at < stations.length; at += perRequest) {
      const asked = stations.slice(at, at + perRequest)
      const fetched = await client.reports(asked, hours, validators, signal)
      isUnchanged &&= fetched === null
      answered = fetched?.validators ?? validators
      const found = toldRows(fetched, nowMs)
      rows.push(...found.rows)
      problems.push(...found.problems)
      aheadCount += found.aheadCount
    }
    const seen = new Set(rows.map(identityOf))
    const fresh = rows.filter((row) => !stored.has(identityOf(row)))
    const completed = { fromMs: nowMs - hours * MS_PER_HOUR, toMs: nowMs }
    return {
      ...fetchedObservations(fresh, problems, completed),
      committed() {
        if (!isUnchanged) stored = seen
        completedToMs = nowMs
        // A report refused as too far in the future is accepted when its time has come, if the feed still has it.
        if (aheadCount === 0 && perRequest >= stations.length) last = { hours, validators: answered }
      },
    }
  }

  return {
    name: NAME,
    intervalMs,
    history: null,
    async *poll(context) {
      const nowMs = context.clock.nowMs()
      completedToMs ??= (await completedWindows(context.postgres, { source: NAME, scope: LIVE })).at(-1)?.toMs
      // A time in the future was written with a fast clock and does not show what was missed.
      const missedHours = Math.ceil(Math.abs(nowMs - (completedToMs ?? 0)) / MS_PER_HOUR) + 1
      const hours = Math.min(Math.max(missedHours, HOURS_MIN), HOURS_MAX)
      yield {
        scope: LIVE,
        title: `${stations.length} stations, ${hours} hours`,
        fetch: () => fetchHours(hours, nowMs, context.signal),
      }
    },
    close: () => client.close(),
  }
}

function identityOf(row: Observation): string {
  return `${row.station_code} ${row.observed_at} ${row.observation_type} ${row.received_at} ${row.raw_metar}`
}
