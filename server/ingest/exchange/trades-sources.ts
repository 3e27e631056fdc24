// The exchanges whose past trades can be fetched. Each has a client in its folder and a line in server/ingest/registry.ts.

import type { LobSource } from '../../../shared/lob-sources.ts'

export const TRADES_SOURCES = ['kalshi', 'polymarket'] as const satisfies readonly LobSource[]
export type TradesSource = (typeof TRADES_SOURCES)[number]
