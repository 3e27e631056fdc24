// What an exchange calls the markets of a series, where their identifiers do not say it: for the explorer's labels.

import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import type { MarketName } from '../storage/market-name-store.ts'

/** Undefined where there is no store. */
export type ReadMarketNames = ((source: string, series: string) => Promise<readonly MarketName[]>) | undefined

export function marketNamesEndpoint(read: ReadMarketNames): Endpoint {
  return defineEndpoint({
    path: '/explorer/names',
    summary: 'Names of the markets of a series, for the explorer.',
    parameters: [
      { name: 'source', in: 'query', description: 'Exchange.', schema: { type: 'string' }, required: true },
      { name: 'series', in: 'query', description: 'Series.', schema: { type: 'string' }, required: true },
    ],
    // The explorer draws without them, also while the store is away.
    handle: async ({ source, series }) => jsonReply((await read?.(source, series).catch(() => [])) ?? []),
  })
}
