// The newest climate reports, station by station: a conditional look at the list of a place's products, then each new
// product once, also over restarts: what was fetched is remembered with what it brought. Its past is the archive's
// (afos-source.ts).

import type { Station } from '../../../shared/stations.ts'
import { readCursorState, writeCursorState } from '../../storage/cursor-store.ts'
import type { IngestSource, IngestStep, SourceContext, StationSourceOptions } from '../source.ts'
import { readStoredValidators } from '../validators-state.ts'
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
      for (const station of stations) {
        const place = placeOf(station)
        if (!client.knows(place)) client.recall(place, await storedSeen(context, station))
        yield stepOf(options, station, context)
      }
    },
    close: () => client.close(),
  }
}

function stepOf(
  { client, stations }: StationSourceOptions<NwsClient>,
  station: Station,
  { clock, signal }: SourceContext,
): IngestStep {
  return {
    scope: station.code,
    title: station.climatePil,
    async fetch() {
      const batch = await client.poll(placeOf(station), signal)
      const fetched = fetchedReports(batch, stations, 'nws', { completed: null, nowMs: clock.nowMs() })
      // A product that was refused as of the future is owed, with all that came with it.
      const seen = fetched.aheadCount > 0 ? null : batch.seen
      return {
        ...fetched,
        async write(transaction) {
          if (seen !== null)
            await writeCursorState(transaction, { source: NAME, scope: station.code }, { seen })
          return await fetched.write(transaction)
        },
        problems: [...fetched.problems, ...batch.failures.map(({ message }) => message)],
        committed() {
          if (seen !== null) batch.acknowledge()
        },
      }
    },
  }
}

function placeOf({ climatePil }: Station): string {
  return climatePil.slice('CLI'.length)
}

async function storedSeen({ postgres }: SourceContext, { code }: Station): Promise<SeenProducts> {
  const { seen } = await readCursorState(postgres, { source: NAME, scope: code })
  const { ids, validators } =
    typeof seen === 'object' && seen !== null ? (seen as { ids?: unknown; validators?: unknown }) : {}
  if (!Array.isArray(ids)) return { ids: [], validators: null }
  return { ids: ids.map(String), validators: readStoredValidators(validators) ?? null }
}
