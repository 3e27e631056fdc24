// The archive of the Iowa Environmental Mesonet: each station's past, month by month. A poll takes only those of the last days that
// have changed since the poll before.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { archiveSource, monthsOf, settledPart, stationHistory } from '../archive-windows.ts'
import { readCursorState, type TimeWindow, writeCursorState } from '../../storage/cursor-store.ts'
import { fetchedObservations, toldRows, type ToldRows } from '../fetched-observations.ts'
import type { FetchedRows, IngestSource, SourceContext, StationSourceOptions } from '../source.ts'
import { changedDays, type ToldState } from '../told-days.ts'
import type { IemClient } from './client.ts'

const NAME = 'iem'

export function iemSource(options: StationSourceOptions<IemClient>): IngestSource {
  const { client, stations } = options
  const ask = async (
    station: Station,
    window: TimeWindow,
    { clock, signal }: SourceContext,
  ): Promise<ToldRows & { readonly nowMs: number }> => {
    const nowMs = clock.nowMs()
    return { ...toldRows(await client.reports(station, window, signal), nowMs), nowMs }
  }
  const history = stationHistory(stations, monthsOf, async (station, window, context) => {
    const { rows, problems, nowMs } = await ask(station, window, context)
    return fetchedObservations(rows, problems, settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs))
  })
  const polled = stationHistory(stations, monthsOf, async (station, window, context) =>
    changedReports(station, window, await ask(station, window, context), context),
  )
  return archiveSource(NAME, options, history, polled)
}

async function changedReports(
  { code: scope }: Station,
  window: TimeWindow,
  { rows, problems }: ToldRows,
  { postgres, clock }: SourceContext,
): Promise<FetchedRows> {
  const cursor = { source: NAME, scope }
  const changed = changedDays(rows, await readCursorState<ToldState>(postgres, cursor))
  const settled = settledPart(window, INGEST_ARCHIVE_SETTLE_MS, clock.nowMs())
  const fetched = fetchedObservations(changed.rows, problems, settled)
  return {
    ...fetched,
    async write(transaction) {
      await writeCursorState(transaction, cursor, { told: changed.told })
      return await fetched.write(transaction)
    },
  }
}
