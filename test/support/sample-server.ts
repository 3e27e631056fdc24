// A real server with its real workers over the committed sample lake.

import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import type { ServeConfig } from '../../server/service/config.ts'
import type { StoreAddress } from '../../shared/sql/store-address.ts'
import { startColdServer } from './cold-workers.ts'
import { MemoryStore, marketRow, seriesRow } from './memory-store.ts'
import { TEST_CONFIG } from './test-server.ts'

/** The lake below data-samples/, relative to the built file. */
export const SAMPLE_LAKE = fileURLToPath(new URL('../../../data-samples/lake', import.meta.url))

/** A catalogue of the series and some markets of the sample lake. */
function sampleStore(): MemoryStore {
  const strikes = ['T79', 'B79.5', 'B81.5', 'B83.5', 'B85.5', 'T86']
  return new MemoryStore(
    [seriesRow('KXHIGHNY'), seriesRow('KXHIGHCHI', { station_code: 'MDW' }), seriesRow('KXHIGHDEN')],
    strikes.map((strike) => marketRow(`KXHIGHNY-26JUL01-${strike}`)),
  )
}

/** Records are served only with a `storeAddress`. */
export async function startSampleServer(
  t: TestContext,
  config: Partial<ServeConfig> = {},
  store = sampleStore(),
  storeAddress?: StoreAddress,
) {
  const server = await startColdServer(
    { ...TEST_CONFIG, lake: SAMPLE_LAKE, ...config },
    { logger: pino({ level: 'silent' }), store, ...(storeAddress && { storeAddress }) },
  )
  t.after(() => server.close())
  return { server, store, url: `http://127.0.0.1:${server.port}` }
}
