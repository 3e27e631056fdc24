// The parts that the recorder needs to connect to Kalshi.

import type { UpstreamHttp } from '../../upstream/upstream-http.ts'
import type { ExchangeFeed } from '../exchange.ts'
import type { KalshiRecording } from './configuration.ts'
import { KalshiDirectory } from './directory.ts'
import { KalshiLane } from './lane.ts'

/** One connection carries every market of a recorder; the exchange allows 500,000. */
const CONNECTIONS_MAX = 1
const MARKETS_PER_CONNECTION_MAX = 10_000

/** `http` has the base URL of the trade API. */
export function openKalshiFeed(
  { series, credentials, socketUrl: url }: KalshiRecording,
  http: UpstreamHttp,
): ExchangeFeed {
  return {
    directory: new KalshiDirectory(http, series),
    lanesMax: CONNECTIONS_MAX,
    marketsPerLaneMax: MARKETS_PER_CONNECTION_MAX,
    makeLane: (log) => new KalshiLane({ url, credentials, log }),
  }
}
