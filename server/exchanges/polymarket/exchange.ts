// Polymarket's entry for the registry.

import type { Exchange } from '../exchange.ts'
import { POLYMARKET_CONFIGURATION, type PolymarketRecording } from './configuration.ts'
import { isTypicalPolymarketFrame, isUntypedPolymarketFrame, readPolymarketFrame } from './frame.ts'
import { readPriceChangeText } from './price-change-text.ts'
import { publicPartOfPolymarket } from './public-frames.ts'
import { POLYMARKET_TRADES } from './trade.ts'

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
  async openFeed(recording, http) {
    const { openPolymarketFeed } = await import('./feed.ts')
    return openPolymarketFeed(recording, http)
  },
}
