// The exchanges of shared/lob-sources.ts as the page needs them. An address may name any other source, which the server
// refuses.

import { LOB_SOURCES, type LobSource, type LobSourceNames, lobSources } from '../shared/lob-sources.ts'

/** The server's default. */
export const DEFAULT_SOURCE: string = lobSources()[0]

const NAMES = new Map<string, LobSourceNames>(Object.entries(LOB_SOURCES))

/** The title of an exchange; an unknown source is its own title. */
export function sourceTitle(source: string): string {
  return NAMES.get(source)?.title ?? source
}

/** Whether the server may have a catalogue, candles and stations of the exchange's markets. */
export function isCatalogued(source: string): boolean {
  return NAMES.get(source)?.isCatalogued ?? false
}

/** The event of a market; empty if its id does not contain it. */
export function eventOf(source: string, market: string): string {
  return NAMES.get(source)?.eventOf(market) ?? ''
}

/** Casts a source for a parameter of the client; the server refuses an unknown one. */
export function asLobSource(source: string): LobSource {
  return source as LobSource
}
