// The exchanges as everybody has to know them, threads that only read the lake included: their names, their market ids, and
// whose series a market is. Pure. To add one: its entry here and its room below server/exchanges. Paths,
// parameters, documentation and the search for a market follow. Rules: contract.md 25 and 32.

import { isSeriesName, seriesOfTicker } from './series-name.ts'

/** An exchange's names. */
export interface LobSourceNames {
  /** The exchange as people write it. */
  readonly title: string
  /** Whether a request may name a market so. */
  readonly isMarketName: (text: string) => boolean
  /** What such a name is: for the documentation, and for the message that refuses another. */
  readonly marketNameText: string
  readonly marketNameShape: string
  /** Whether the market of an id is one that the name of a request stands for. */
  readonly isNamed: (marketId: string, name: string) => boolean
  /** The series under which a market is filed where nobody names another; and the same in words. */
  readonly seriesOf: (marketId: string) => string
  readonly seriesText: string
  /** Whether a market stands in the series of its id, or may stand in any. */
  readonly isSeriesInId: boolean
  /** The event of a market; empty where its id does not say it. */
  readonly eventOf: (marketId: string) => string
  /** Whether the catalogue, candles and the stations that settle its markets are collected. */
  readonly isCatalogued: boolean
  /** Whether a series is made for one market by an import that was told no other: it holds nothing else. */
  readonly isOfOneMarket: (series: string) => boolean
  /** A series for the documentation. */
  readonly exampleSeries: string
}

const POLYMARKET_NAME = /^[A-Za-z0-9_-]{1,128}(?::[A-Za-z0-9_-]{1,128})?$/
const POLYMARKET_CONDITION = /^0x[0-9a-f]{64}$/i

/** The first is meant where a request names none. */
export const LOB_SOURCES = {
  kalshi: {
    title: 'Kalshi',
    // Tickers become paths of the lake, so they are held to what a path may be made of.
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
    // A condition's id alone stands for its tokens.
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

/** The names of all exchanges, the usual one first. */
export function lobSources(): readonly [LobSource, LobSource, ...LobSource[]] {
  return Object.keys(LOB_SOURCES) as [LobSource, LobSource, ...LobSource[]]
}

export function lobSourceNames(source: LobSource): LobSourceNames {
  return LOB_SOURCES[source]
}
