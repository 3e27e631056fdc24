// The archive of the Iowa Environmental Mesonet: each station's past, month by month. A poll takes only those of the last days that
// have changed since the poll before.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { archiveSource, monthsOf, settledPart, stationHistory } from '../archive-windows.ts'
import { readCursorState, type TimeWindow, writeCursorState } from '../../storage/cursor-store.ts'
import { fetchedObservations, toldRows } from '../fetched-observations.ts'
import type { IngestSource, SourceContext, StationSourceOptions } from '../source.ts'
import { changedDays, type ToldState } from '../told-days.ts'
import type { IemClient } from './client.ts'

const NAME = 'iem'

export function iemSource(options: StationSourceOptions<IemClient>): IngestSource {
  const { client, stations } = options
  const ask = async (station: Station, window: TimeWindow, { clock, signal }: SourceContext) => {
    const nowMs = clock.nowMs()
    const { rows, problems } = toldRows(await client.reports(station, window, signal), nowMs)
    return { rows, problems, completed: settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs) }
  }
  const history = stationHistory(stations, monthsOf, async (station, window, context) => {
    const { rows, problems, completed } = await ask(station, window, context)
    return fetchedObservations(rows, problems, completed)
  })
  // Of the last days, only those that have changed.
  const polled = stationHistory(stations, monthsOf, async (station, window, context) => {
    const { rows, problems, completed } = await ask(station, window, context)
    const cursor = { source: NAME, scope: station.code }
    const changed = changedDays(rows, await readCursorState<ToldState>(context.postgres, cursor))
    const fetched = fetchedObservations(changed.rows, problems, completed)
    return {
      ...fetched,
      async write(transaction) {
        await writeCursorState(transaction, cursor, { told: changed.told })
        return await fetched.write(transaction)
      },
    }
  })
  return archiveSource(NAME, options, history, polled)
}
