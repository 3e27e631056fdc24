// Kalshi's entry for the registry.

import type { Exchange } from '../exchange.ts'
import {
  KALSHI_ADDRESS_OPTIONS,
  KALSHI_SECRETS_HELP,
  KALSHI_SERIES_OPTION,
  KALSHI_URL_OPTION,
  readKalshiRecording,
} from './configuration.ts'
import type { KalshiRecording } from './configuration.ts'
import { readDeltaText } from './delta-text.ts'
import { isTypicalKalshiFrame, readKalshiFrame } from './frame.ts'
import { publicPartOfKalshi } from './public-frames.ts'
import { KALSHI_TRADES } from './trade.ts'

export const KALSHI: Exchange<KalshiRecording> = {
  isTypical: isTypicalKalshiFrame,
  publicPart: publicPartOfKalshi,
  readFrame: readKalshiFrame,
  readText: readDeltaText,
  trades: KALSHI_TRADES,
  isNumbered: true,
  hasNoLeg: true,
  disconnectLine: '{"type":"disconnect","ts":…}',
  seriesOption: KALSHI_SERIES_OPTION,
  addressOptions: KALSHI_ADDRESS_OPTIONS,
  sharedOptions: [KALSHI_URL_OPTION],
  secretsHelp: KALSHI_SECRETS_HELP,
  readRecording: readKalshiRecording,
  describe: (recording) => ({ ...recording, credentials: 'given' }),
  async openFeed(recording, http) {
    const { openKalshiFeed } = await import('./feed.ts')
    return openKalshiFeed(recording, http)
  },
}
