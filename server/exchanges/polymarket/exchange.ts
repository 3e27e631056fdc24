// Polymarket's entry for the registry.

import type { Exchange } from '../exchange.ts'
import {
  POLYMARKET_ADDRESS_OPTIONS,
  POLYMARKET_SERIES_OPTION,
  readPolymarketRecording,
} from './configuration.ts'
import type { PolymarketRecording } from './configuration.ts'
import { isTypicalPolymarketFrame, isUntypedPolymarketFrame, readPolymarketFrame } from './frame.ts'
import { readPriceChangeText } from './price-change-text.ts'
import { publicPartOfPolymarket } from './public-frames.ts'
import { POLYMARKET_TRADES } from './trade.ts'

export const POLYMARKET: Exchange<PolymarketRecording> = {
  isTypical: isTypicalPolymarketFrame,
  isUntyped: isUntypedPolymarketFrame,
  publicPart: publicPartOfPolymarket,
  readFrame: readPolymarketFrame,
  readText: readPriceChangeText,
  trades: POLYMARKET_TRADES,
  isNumbered: false,
  hasNoLeg: false,
  disconnectLine: '{"event_type":"disconnect","timestamp":…}',
  seriesOption: POLYMARKET_SERIES_OPTION,
  addressOptions: POLYMARKET_ADDRESS_OPTIONS,
  sharedOptions: [],
  readRecording: readPolymarketRecording,
  describe: (recording) => recording,
  async openFeed(recording, http) {
    const { openPolymarketFeed } = await import('./feed.ts')
    return openPolymarketFeed(recording, http)
  },
}
