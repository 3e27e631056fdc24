// The configuration of a recording of Polymarket. It needs no key.

import { urlOption } from '../../options/options.ts'
import type { OptionDeclaration, ParsedOptions } from '../../options/options.ts'

export interface PolymarketRecording {
  /** Names of events before `-on-`. */
  readonly series: readonly string[]
  /** `wss://…/ws/market` */
  readonly socketUrl: string
  /** The Gamma API. */
  readonly restUrl: string
}

// oxfmt-ignore
export const POLYMARKET_SERIES_OPTION: OptionDeclaration =
  { name: 'polymarket-series', placeholder: '<list>', description: 'the same on Polymarket: event names before -on-' }

// oxfmt-ignore
export const POLYMARKET_ADDRESS_OPTIONS: readonly OptionDeclaration[] = [
  { name: 'polymarket-ws-url', placeholder: '<url>', description: 'market channel of Polymarket', default: 'wss://ws-subscriptions-clob.polymarket.com/ws/market' },
  { name: 'polymarket-url', placeholder: '<url>', description: 'Gamma API of Polymarket', default: 'https://gamma-api.polymarket.com' },
]

/** @throws {UsageError} that names the wrong option */
export function readPolymarketRecording(
  series: readonly string[],
  options: ParsedOptions,
): PolymarketRecording {
  return {
    series,
    socketUrl: urlOption(options.demand('polymarket-ws-url'), ['ws:', 'wss:']),
    restUrl: urlOption(options.demand('polymarket-url'), ['http:', 'https:']),
  }
}
