// The newest climate reports, station by station: a conditional look at the list of a place's products, then each new
// product once. Its past is the archive's (afos-source.ts).

import type { Station } from '../../../shared/stations.ts'
import type { IngestSource, IngestStep } from '../source.ts'
import type { NwsClient } from './nws-client.ts'
import { fetchedReports } from './stored-reports.ts'

export interface NwsSourceOptions {
  readonly client: NwsClient
  readonly stations: readonly Station[]
  readonly intervalMs: number
}

export function nwsSource({ client, stations, intervalMs }: NwsSourceOptions): IngestSource {
  return {
    name: 'climate-nws',
    intervalMs,
    history: null,
    async *poll() {
      for (const station of stations) yield stepOf(client, stations, station)
    },
    close: () => client.close(),
  }
}

function stepOf(client: NwsClient, stations: readonly Station[], station: Station): IngestStep {
  const place = station.climatePil.slice('CLI'.length)
  return {
    scope: station.code,
    title: station.climatePil,
    async fetch(signal) {
      const batch = await client.poll(place, signal)
      const fetched = fetchedReports(batch, stations, 'nws', null)
      return {
        ...fetched,
        problems: [...fetched.problems, ...batch.failures.map(({ message }) => message)],
        committed: () => batch.acknowledge(),
      }
    },
  }
}
