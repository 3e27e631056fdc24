// The exchange's names for the markets of a date's books, for the explorer's labels: some identifiers do not contain them.

import { lobFilePath } from '../../shared/lake-layout.ts'
import { lobSources } from '../../shared/lob-sources.ts'
import { isSeriesName } from '../../shared/series-name.ts'
import { defineEndpoint, type Endpoint, jsonReply } from '../http/endpoint.ts'
import { lakeFileFacts } from '../lake/lake-file-facts.ts'
import type { MarketName } from '../storage/market-name-store.ts'

type Place = Pick<MarketName, 'source' | 'series'>
/** Undefined without a store. */
export type ReadMarketNames =
  | ((place: Place, ids: readonly string[]) => Promise<readonly MarketName[]>)
  | undefined

const PARAMETERS = [
  { name: 'source', description: '', schema: { type: 'string', enum: lobSources() }, required: true },
  { name: 'series', description: '', schema: { type: 'string' }, required: true },
  { name: 'date', description: '', schema: { type: 'string', format: 'date' }, required: true },
] as const

export function marketNamesEndpoint(lake: string, read: ReadMarketNames): Endpoint {
  return defineEndpoint({
    path: '/explorer/names',
    summary: 'Names of the markets of a series and date, for the explorer.',
    parameters: PARAMETERS,
    async handle({ source, series, date }) {
      const path = lobFilePath(lake, source, series, date)
      // The explorer works without names, also while the store is unreachable.
      const facts = isSeriesName(series) ? await lakeFileFacts(path).catch(() => undefined) : undefined
      const ids = [...(facts?.coverage?.markets.keys() ?? [])]
      return jsonReply((await read?.({ source, series }, ids).catch(() => [])) ?? [])
    },
  })
}
