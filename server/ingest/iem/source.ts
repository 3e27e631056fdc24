// The archive of the Iowa Environmental Mesonet: each station's past, month by month.

import { INGEST_ARCHIVE_SETTLE_MS } from '../../../shared/limits.ts'
import { findStation, type Station } from '../../../shared/stations.ts'
import { monthsOf, pollRecentDays, settledPart, windowTitle } from '../archive-windows.ts'
import { fetchedObservations, requireRows } from '../fetched-observations.ts'
import type { IngestSource, SourceHistory } from '../source.ts'
import type { IemClient } from './client.ts'

const NAME = 'iem'

export interface IemSourceOptions {
  readonly client: IemClient
  readonly stations: readonly Station[]
  readonly intervalMs: number
}

export function iemSource({ client, stations, intervalMs }: IemSourceOptions): IngestSource {
  const history: SourceHistory = {
    scopes: async () => stations.map(({ code }) => code),
    windows: monthsOf,
    step: (scope, window, { clock }) => ({
      scope,
      title: `${scope} ${windowTitle(window)}`,
      async fetch(signal) {
        const station = stations.find(({ code }) => code === scope) ?? findStation(scope)
        if (station === undefined) throw new RangeError(`there is no station ${scope}`)
        const nowMs = clock.nowMs()
        const { rows, problems } = requireRows(await client.fetch({ station, ...window, signal }))
        return fetchedObservations(rows, problems, settledPart(window, INGEST_ARCHIVE_SETTLE_MS, nowMs))
      },
    }),
  }
  return {
    name: NAME,
    intervalMs,
    history,
    poll: (context) => pollRecentDays(NAME, history, context),
    close: () => client.close(),
  }
}
