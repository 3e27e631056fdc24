// The newest climate reports, station by station: a conditional request for a place's product list, then each new product once,
// also across restarts: seen products are stored in one transaction with their reports. The archive has the past (afos-source.ts).

import type { Station } from '../../../shared/stations.ts'
import { readCursorState, writeCursorState } from '../../storage/cursor-store.ts'
import type { IngestSource, IngestStep, SourceContext, StationSourceOptions } from '../source.ts'
import type { NwsClient, SeenProducts } from './nws-client.ts'
import { fetchedReports } from './stored-reports.ts'

const NAME = 'climate-nws'

export function nwsSource(options: StationSourceOptions<NwsClient>): IngestSource {
  const { client, stations, intervalMs } = options
  return {
    name: NAME,
    intervalMs,
    history: null,
    async *poll(context) {
      for (const station of stations) yield stepOf(options, station, context)
    },
    close: () => client.close(),
  }
}

function stepOf(
  { client, stations }: StationSourceOptions<NwsClient>,
  station: Station,
  { clock, postgres, signal }: SourceContext,
): IngestStep {
  const cursor = { source: NAME, scope: station.code }
  return {
    scope: station.code,
    title: station.climatePil,
    async fetch() {
      const before = await readCursorState<{ seen: SeenProducts }>(postgres, cursor)
      const batch = await client.poll(station.climatePil.slice('CLI'.length), before.seen, signal)
      const fetched = fetchedReports(batch, stations, 'nws', { completed: null, nowMs: clock.nowMs() })
      // If a product was refused as too far in the future, fetch it and all others of this batch again.
      const seen = fetched.aheadCount > 0 ? null : batch.seen
      return {
        ...fetched,
        async write(transaction) {
          if (seen !== null) await writeCursorState(transaction, cursor, { seen })
          return await fetched.write(transaction)
        },
        problems: [...fetched.problems, ...batch.failures.map(({ message }) => message)],
      }
    },
  }
}
