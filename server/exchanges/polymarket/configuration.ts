// The configuration of a recording of Polymarket. It needs no key.

import { urlOption } from '../../options/options.ts'
import type { ExchangeConfiguration } from '../exchange.ts'

export interface PolymarketRecording {
  /** Names of events before `-on-`. */
  readonly series: readonly string[]
  /** `wss://…/ws/market` */
  readonly socketUrl: string
  /** The Gamma API. */
  readonly restUrl: string
}

// oxfmt-ignore
export const POLYMARKET_CONFIGURATION: ExchangeConfiguration<PolymarketRecording> = {
  seriesOption: { name: 'polymarket-series', placeholder: '<list>', description: 'the same on Polymarket: event names before -on-' },
  addressOptions: [
    { name: 'polymarket-ws-url', placeholder: '<url>', description: 'market channel of Polymarket', default: 'wss://ws-subscriptions-clob.polymarket.com/ws/market' },
    { name: 'polymarket-url', placeholder: '<url>', description: 'Gamma API of Polymarket', default: 'https://gamma-api.polymarket.com' },
  ],
  sharedOptions: [],
  readRecording: (series, options) => ({
    series,
    socketUrl: urlOption(options.demand('polymarket-ws-url'), ['ws:', 'wss:']),
    restUrl: urlOption(options.demand('polymarket-url'), ['http:', 'https:']),
  }),
  describe: (recording) => recording,
}
