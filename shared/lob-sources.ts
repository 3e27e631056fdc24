// The exchanges, for all code including threads that only read the lake: names, market ids, and the series of a market. Pure. To
// add one: add its entry here and its folder below server/exchanges. Paths, parameters, documentation and the search for a market
// are derived. Rules: contract.md 25 and 32.

import { isSeriesName, seriesOfTicker } from './series-name.ts'

/** The naming rules of an exchange. */
export interface LobSourceNames {
  /** The display name of the exchange. */
  readonly title: string
  /** Whether a request may use this text as a market name. */
  readonly isMarketName: (text: string) => boolean
  /** A description of such a name: for the documentation, and for the error about any other text. */
  readonly marketNameText: string
  readonly marketNameShape: string
  /** Whether the market name of a request includes this market. */
  readonly isNamed: (marketId: string, name: string) => boolean
  /** The default series of a market; and the same in words. */
  readonly seriesOf: (marketId: string) => string
  readonly seriesText: string
  /** Whether a market's id determines its series; otherwise the market may be in any series. */
  readonly isSeriesInId: boolean
  /** The event of a market; empty if its id does not have it. */
  readonly eventOf: (marketId: string) => string
  /** Whether Bookcast collects its catalogue, its candles, and the stations that settle its markets. */
  readonly isCatalogued: boolean
  /** Whether a series was made by default for a single market, so that it has no other markets. */
  readonly isOfOneMarket: (series: string) => boolean
  /** An example for the documentation. */
  readonly exampleSeries: string
}

const POLYMARKET_NAME = /^[A-Za-z0-9_-]{1,128}(?::[A-Za-z0-9_-]{1,128})?$/
const POLYMARKET_CONDITION = /^0x[0-9a-f]{64}$/i

/** The first is the default of requests. */
export const LOB_SOURCES = {
  kalshi: {
    title: 'Kalshi',
    // Tickers become paths of the lake, so they must be valid in a path.
    isMarketName: isSeriesName,
    marketNameText: 'Market ticker',
    marketNameShape: 'a ticker such as KXHIGHNY-26JUL01-B81.5',
    isNamed: (marketId, name) => marketId === name,
    seriesOf: seriesOfTicker,
    seriesText: 'the ticker up to its first dash',
    isSeriesInId: true,
    eventOf: (marketId) => marketId.slice(0, Math.max(0, marketId.lastIndexOf('-'))),
    isCatalogued: true,
    isOfOneMarket: () => false,
    exampleSeries: 'KXHIGHNY',
  },
  polymarket: {
    title: 'Polymarket',
    isMarketName: (text) => POLYMARKET_NAME.test(text),
    marketNameText: '<condition_id>:<token_id>, or <condition_id> for both its tokens',
    marketNameShape: '<condition_id>:<token_id> or <condition_id>',
    // A condition id alone means both its tokens.
    isNamed: (marketId, name) => marketId === name || marketId.startsWith(`${name}:`),
    seriesOf: (marketId) => marketId.split(':', 1)[0]!,
    seriesText: 'the condition id',
    isSeriesInId: false,
    eventOf: () => '',
    isCatalogued: false,
    isOfOneMarket: (series) => POLYMARKET_CONDITION.test(series),
    exampleSeries: 'highest-temperature-in-nyc',
  },
} as const satisfies Readonly<Record<string, LobSourceNames>>

export type LobSource = keyof typeof LOB_SOURCES

/** The keys of all exchanges, the default first. */
export function lobSources(): readonly [LobSource, LobSource, ...LobSource[]] {
  return Object.keys(LOB_SOURCES) as [LobSource, LobSource, ...LobSource[]]
}

export function lobSourceNames(source: LobSource): LobSourceNames {
  return LOB_SOURCES[source]
}
