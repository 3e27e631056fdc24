// Polymarket's entry for the registry.

import type { Exchange } from '../exchange.ts'
import { POLYMARKET_CONFIGURATION, type PolymarketRecording } from './configuration.ts'
import { isTypicalPolymarketFrame, isUntypedPolymarketFrame, readPolymarketFrame } from './frame.ts'
import { readPriceChangeText } from './price-change-text.ts'
import { publicPartOfPolymarket } from './public-frames.ts'
import { POLYMARKET_TRADES } from './trade.ts'

const CONNECTIONS_MAX = 10
const ASSETS_PER_CONNECTION_MAX = 500

export const POLYMARKET: Exchange<PolymarketRecording> = {
  ...POLYMARKET_CONFIGURATION,
  isTypical: isTypicalPolymarketFrame,
  isUntyped: isUntypedPolymarketFrame,
  publicPart: publicPartOfPolymarket,
  readFrame: readPolymarketFrame,
  readText: readPriceChangeText,
  trades: POLYMARKET_TRADES,
  isNumbered: false,
  hasNoLeg: false,
  disconnectLine: '{"event_type":"disconnect","timestamp":…}',
  async openFeed({ series, socketUrl: url }, http) {
    const { polymarketDirectory } = await import('./directory.ts')
    const { PolymarketLane } = await import('./lane.ts')
    return {
      directory: polymarketDirectory(http, series),
      lanesMax: CONNECTIONS_MAX,
      marketsPerLaneMax: ASSETS_PER_CONNECTION_MAX,
      makeLane: (log) => new PolymarketLane({ url, log }),
    }
  },
}
