// Kalshi's entry for the registry.

import type { Exchange } from '../exchange.ts'
import { KALSHI_CONFIGURATION, type KalshiRecording } from './configuration.ts'
import { readDeltaText } from './delta-text.ts'
import { isTypicalKalshiFrame, readKalshiFrame } from './frame.ts'
import { publicPartOfKalshi } from './public-frames.ts'
import { KALSHI_TRADES } from './trade.ts'

/** One connection carries every market of a recorder; the exchange allows 500,000. */
const CONNECTIONS_MAX = 1
const MARKETS_PER_CONNECTION_MAX = 10_000

export const KALSHI: Exchange<KalshiRecording> = {
  ...KALSHI_CONFIGURATION,
  isTypical: isTypicalKalshiFrame,
  publicPart: publicPartOfKalshi,
  readFrame: readKalshiFrame,
  readText: readDeltaText,
  trades: KALSHI_TRADES,
  isNumbered: true,
  hasNoLeg: true,
  disconnectLine: '{"type":"disconnect","ts":…}',
  async openFeed({ series, credentials, socketUrl: url }, http) {
    const { kalshiDirectory } = await import('./directory.ts')
    const { KalshiLane } = await import('./lane.ts')
    return {
      directory: kalshiDirectory(http, series),
      lanesMax: CONNECTIONS_MAX,
      marketsPerLaneMax: MARKETS_PER_CONNECTION_MAX,
      makeLane: (log) => new KalshiLane({ url, credentials, log }),
    }
  },
}
