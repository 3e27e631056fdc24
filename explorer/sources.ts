// The exchanges as the page needs them: their facts are those of shared/lob-sources.ts. An address may name any other text,
// which the server refuses.

import { LOB_SOURCES, type LobSource, type LobSourceNames, lobSources } from '../shared/lob-sources.ts'

/** The server's default. */
export const DEFAULT_SOURCE: string = lobSources()[0]

const NAMES = new Map<string, LobSourceNames>(Object.entries(LOB_SOURCES))

/** The title of an exchange; another text is its own. */
export function sourceTitle(source: string): string {
  return NAMES.get(source)?.title ?? source
}

/** Whether the server may have a catalogue, candles and stations of the exchange's markets. */
export function isCatalogued(source: string): boolean {
  return NAMES.get(source)?.isCatalogued ?? false
}

/** The event of a market; empty where its id does not say it. */
export function eventOf(source: string, market: string): string {
  return NAMES.get(source)?.eventOf(market) ?? ''
}

/** For a parameter of the clients, which know the same exchanges. */
export function asLobSource(source: string): LobSource {
  return source as LobSource
}
