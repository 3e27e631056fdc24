// The names of a fictional exchange: its market ids, like `nyc~2026-07-01~80`, contain their series.

import type { LobSourceNames } from '../../../shared/lob-sources.ts'

const MARKET = /^[a-z]{1,32}~\d{4}-\d{2}-\d{2}~\d{1,3}$/

export const LUNEX_NAMES: LobSourceNames = {
  title: 'Lunex',
  isMarketName: (text) => MARKET.test(text),
  marketNameText: '<place>~<date>~<degrees>',
  marketNameShape: '<place>~<date>~<degrees>',
  isNamed: (marketId, name) => marketId === name,
  seriesOf: (marketId) => marketId.split('~', 1)[0]!,
  seriesText: 'the place',
  isSeriesInId: true,
  eventOf: () => '',
  isCatalogued: false,
  isOfOneMarket: () => false,
  exampleSeries: 'nyc',
}
