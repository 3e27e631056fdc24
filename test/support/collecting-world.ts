// All upstreams on loopback: the REST sources, the exchange's feed, and the variables or the configuration that select them in a
// collecting process.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { LocalKalshi } from './local-kalshi.ts'
import { type Answer, send } from './local-upstream.ts'
import { TEST_KEY_ID, TEST_PRIVATE_KEY } from './recorder-harness.ts'
import { startWorld, type UpstreamWorld } from './upstream-world.ts'

export interface CollectingWorld {
  readonly rest: UpstreamWorld
  readonly feed: LocalKalshi
  /** For a separate process. `root` is the directory of its key. */
  environment(root: string): Promise<NodeJS.ProcessEnv>
}

/** Both sides of the exchange: its REST API has the world's markets, its feed the recorded ones. */
export async function startCollectingWorld(t: TestContext): Promise<CollectingWorld> {
  const rest = await startWorld(t)
  const feed = await LocalKalshi.start(t)
  rest.fault = ({ url }) => recordedEvents(feed, url)
  return {
    rest,
    feed,
    async environment(root) {
      const keyFile = join(root, 'key.pem')
      await writeFile(keyFile, TEST_PRIVATE_KEY)
      const { config } = rest
      return {
        BOOKCAST_KALSHI_URL: config.kalshiUrl,
        BOOKCAST_KALSHI_WS_URL: feed.socketUrl,
        BOOKCAST_KALSHI_KEY_ID: TEST_KEY_ID,
        BOOKCAST_KALSHI_PRIVATE_KEY_FILE: keyFile,
        BOOKCAST_AVIATION_WEATHER_URL: config.aviationWeatherUrl,
        BOOKCAST_IEM_URL: config.iemUrl,
        BOOKCAST_NCEI_URL: config.nceiUrl,
        BOOKCAST_NWS_URL: config.nwsUrl,
        BOOKCAST_ACIS_URL: config.acisUrl,
      }
    },
  }
}

/** The list of open events with their markets, from which the recorder finds the markets to follow. */
function recordedEvents(feed: LocalKalshi, url: string): Answer | undefined {
  const { pathname, searchParams } = new URL(url, 'http://local')
  if (!pathname.endsWith('/events') || searchParams.get('with_nested_markets') !== 'true') return undefined
  const isOpen = searchParams.get('status') === 'open'
  const markets = [...feed.markets].map(([ticker, status]) => ({ ticker, status }))
  const events = isOpen ? [{ event_ticker: 'E', markets }] : []
  return send(200, JSON.stringify({ events, cursor: '' }), { 'content-type': 'application/json' })
}
