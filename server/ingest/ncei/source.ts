// NCEI's archive: one file per station and year. A poll requests the current year's files, and those of the year before until it is
// settled, conditionally. From a new file it takes the days that have changed since the file before. A backfill requests whole
// files and stores the reports of its window.

import type { Station } from '../../../shared/stations.ts'
import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { readCursorState, type TimeWindow, writeCursorState } from '../../storage/cursor-store.ts'
import type { Validators } from '../../upstream/upstream-http.ts'
import { settledPart, stationHistory, yearsOf } from '../archive-windows.ts'
import { fetchedObservations, toldRows } from '../fetched-observations.ts'
import type { FetchedRows, IngestSource, IngestStep, SourceContext, StationSourceOptions } from '../source.ts'
import { changedDays, type ToldState } from '../told-days.ts'
import type { NceiClient } from './client.ts'

/** The archive amends its yearly files for months. */
const INGEST_YEARLY_SETTLE_MS = 60 * 24 * 60 * 60 * 1000

const NAME = 'ncei'

interface State extends ToldState {
  /** Validators by year, only of files stored completely: a 304 must not hide rows that were left out. */
  readonly files: Readonly<Record<string, Validators | null>>
}

export function nceiSource({ client, stations, intervalMs }: StationSourceOptions<NceiClient>): IngestSource {
  const history = stationHistory(stations, yearsOf, async (station, window, { clock, signal }) => {
    const year = new Date(window.fromMs).getUTCFullYear()
    const nowMs = clock.nowMs()
    const { rows, problems } = toldRows(await client.file(station, year, undefined, signal), nowMs)
    const wanted = rows.filter(({ observed_at }) => isWithin(observed_at, window))
    return fetchedObservations(wanted, problems, settledPart(window, INGEST_YEARLY_SETTLE_MS, nowMs))
  })
  return {
    name: NAME,
    intervalMs,
    history,
    poll: (context) => pollYears(client, stations, context),
    close: () => client.close(),
  }
}

async function* pollYears(
  client: NceiClient,
  stations: readonly Station[],
  context: SourceContext,
): AsyncGenerator<IngestStep, void, void> {
  const nowMs = context.clock.nowMs()
  const openFromMs = Math.floor((nowMs - INGEST_YEARLY_SETTLE_MS) / MS_PER_DAY) * MS_PER_DAY
  for (const { fromMs, toMs } of yearsOf({ fromMs: openFromMs, toMs: nowMs })) {
    const year = new Date(fromMs).getUTCFullYear()
    // From a past year, take only whole days that are not settled: the state remembers as many days as one year has.
    const takenFromMs = toMs < nowMs ? openFromMs : 0
    for (const station of stations) {
      const cursor = { source: NAME, scope: station.code }
      const state = await readCursorState<State>(context.postgres, cursor)
      const { files = {} } = state
      yield {
        scope: station.code,
        title: `${station.code} ${year}`,
        async fetch(): Promise<FetchedRows> {
          const { signal } = context
          const validators = files[year] ?? undefined
          const fetched = await client.file(station, year, validators, signal)
          const { rows, problems, aheadCount } = toldRows(fetched, context.clock.nowMs())
          const taken = rows.filter(({ observed_at }) => observed_at >= takenFromMs)
          const { rows: changed, told } = changedDays(taken, state)
          const observations = fetchedObservations(changed, problems, null)
          if (fetched === null) return observations
          return {
            ...observations,
            async write(transaction) {
              // If a report was refused as too far in the future, request the file in full again.
              const whole = aheadCount > 0 ? null : fetched.validators
              await writeCursorState(transaction, cursor, { files: { ...files, [year]: whole }, told })
              return await observations.write(transaction)
            },
          }
        },
      }
    }
  }
}

function isWithin(ms: number, { fromMs, toMs }: TimeWindow): boolean {
  return ms >= fromMs && ms < toMs
}
