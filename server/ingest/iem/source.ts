// The archive of the Iowa Environmental Mesonet: each station's past, month by month. A poll takes of the last days those
// that are not as the poll before told them.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import type { Station } from '../../../shared/stations.ts'
import { monthsOf, pollRecentDays, settledPart, stationHistory } from '../archive-windows.ts'
import { readCursorState, type TimeWindow, writeCursorState } from '../../storage/cursor-store.ts'
import { fetchedObservations, toldRows, type ToldRows } from '../fetched-observations.ts'
import type { FetchedRows, IngestSource, SourceContext, StationSourceOptions } from '../source.ts'
import { changedDays, readToldDays } from '../told-days.ts'
import type { IemClient } from './client.ts'

const NAME = 'iem'

export function iemSource({ client, stations, intervalMs }: StationSourceOptions<IemClient>): IngestSource {
  const ask = async (
    station: Station,
    window: TimeWindow,
    nowMs: number,
    signal: AbortSignal,
  ): Promise<ToldRows> => toldRows(await client.reports({ station, ...window, signal }), nowMs)
  const history = stationHistory(stations, monthsOf, async (station, window, { clock }, signal) => {
    const nowMs = clock.nowMs()
    const { rows, problems } = await ask(station, window, nowMs, signal)
    return fetchedObservations(rows, problems, settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs))
  })
  const polled = stationHistory(stations, monthsOf, async (station, window, context, signal) => {
    const found = await ask(station, window, context.clock.nowMs(), signal)
    return await changedReports(station, window, found, context)
  })
  return {
    name: NAME,
    intervalMs,
    history,
    poll: (context) => pollRecentDays(NAME, polled, context),
    close: () => client.close(),
  }
}

async function changedReports(
  { code: scope }: Station,
  window: TimeWindow,
  { rows, problems }: ToldRows,
  { postgres, clock }: SourceContext,
): Promise<FetchedRows> {
  const cursor = { source: NAME, scope }
  const changed = changedDays(rows, readToldDays(await readCursorState(postgres, cursor)))
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
