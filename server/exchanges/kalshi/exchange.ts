// Kalshi's entry for the registry.

import type { Exchange } from '../exchange.ts'
import { KALSHI_CONFIGURATION, type KalshiRecording } from './configuration.ts'
import { readDeltaText } from './delta-text.ts'
import { isTypicalKalshiFrame, readKalshiFrame } from './frame.ts'
import { publicPartOfKalshi } from './public-frames.ts'
import { KALSHI_TRADES } from './trade.ts'

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
  async openFeed(recording, http) {
    const { openKalshiFeed } = await import('./feed.ts')
    return openKalshiFeed(recording, http)
  },
}
