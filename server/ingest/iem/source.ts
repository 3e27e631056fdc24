// The archive of the Iowa Environmental Mesonet: each station's past, month by month. A poll takes of the last days those
// that are not as the poll before told them.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import { findStation, type Station } from '../../../shared/stations.ts'
import { monthsOf, pollRecentDays, settledPart, windowTitle } from '../archive-windows.ts'
import { readCursorState, type TimeWindow, writeCursorState } from '../../storage/cursor-store.ts'
import { fetchedObservations, requireRows, type RequiredRows } from '../fetched-observations.ts'
import type { FetchedRows, IngestSource, SourceContext, SourceHistory } from '../source.ts'
import { changedDays, readToldDays } from '../told-days.ts'
import type { IemClient } from './client.ts'

const NAME = 'iem'

export interface IemSourceOptions {
  readonly client: IemClient
  readonly stations: readonly Station[]
  readonly intervalMs: number
}

export function iemSource({ client, stations, intervalMs }: IemSourceOptions): IngestSource {
  const ask = async (
    scope: string,
    window: TimeWindow,
    nowMs: number,
    signal: AbortSignal,
  ): Promise<RequiredRows> => {
    const station = stations.find(({ code }) => code === scope) ?? findStation(scope)
    if (station === undefined) throw new RangeError(`there is no station ${scope}`)
    return requireRows(await client.fetch({ station, ...window, signal }), nowMs)
  }
  const history: SourceHistory = {
    scopes: async () => stations.map(({ code }) => code),
    windows: monthsOf,
    step: (scope, window, { clock }) => ({
      scope,
      title: `${scope} ${windowTitle(window)}`,
      async fetch(signal) {
        const nowMs = clock.nowMs()
        const { rows, problems } = await ask(scope, window, nowMs, signal)
        return fetchedObservations(rows, problems, settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs))
      },
    }),
  }
  const polled: SourceHistory = {
    ...history,
    step: (scope, window, context) => ({
      scope,
      title: `${scope} ${windowTitle(window)}`,
      async fetch(signal) {
        const found = await ask(scope, window, context.clock.nowMs(), signal)
        return await changedReports(scope, window, found, context)
      },
    }),
  }
  return {
    name: NAME,
    intervalMs,
    history,
    poll: (context) => pollRecentDays(NAME, polled, context),
    close: () => client.close(),
  }
}

async function changedReports(
  scope: string,
  window: TimeWindow,
  { rows, problems }: RequiredRows,
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
