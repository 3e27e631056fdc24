// All exchanges: one line each.

import { lobSources } from '../../shared/lob-sources.ts'
import type { LobSource } from '../../shared/lob-sources.ts'
import type { Exchange } from './exchange.ts'
import { KALSHI } from './kalshi/exchange.ts'
import { POLYMARKET } from './polymarket/exchange.ts'

export const EXCHANGES = {
  kalshi: KALSHI,
  polymarket: POLYMARKET,
} as const satisfies { readonly [Name in LobSource]: Exchange }

/** The configured recordings, by exchange; undefined for those not recorded. */
export type ExchangeRecordings = {
  readonly [Name in LobSource]?: ReturnType<(typeof EXCHANGES)[Name]['readRecording']> | undefined
}

export function exchangeOf(source: LobSource): Exchange {
  return EXCHANGES[source]
}

/** Every exchange with its name, the default one first. */
export function exchanges(): readonly { readonly source: LobSource; readonly exchange: Exchange }[] {
  return lobSources().map((source) => ({ source, exchange: exchangeOf(source) }))
}
