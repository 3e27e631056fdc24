// The parts that the recorder needs to connect to Polymarket.

import type { UpstreamHttp } from '../../upstream/upstream-http.ts'
import type { ExchangeFeed } from '../exchange.ts'
import type { PolymarketRecording } from './configuration.ts'
import { PolymarketDirectory } from './directory.ts'
import { PolymarketLane } from './lane.ts'

const CONNECTIONS_MAX = 10
const ASSETS_PER_CONNECTION_MAX = 500

/** `http` has the base URL of the Gamma API. */
export function openPolymarketFeed(
  { series, socketUrl: url }: PolymarketRecording,
  http: UpstreamHttp,
): ExchangeFeed {
  return {
    directory: new PolymarketDirectory(http, series),
    lanesMax: CONNECTIONS_MAX,
    marketsPerLaneMax: ASSETS_PER_CONNECTION_MAX,
    makeLane: (log) => new PolymarketLane({ url, log }),
  }
}
