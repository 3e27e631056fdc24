// Resolves a request to its markets, and to the series whose files have them, by a search of the lake (series-search.ts). A name
// that no file has is a 404, so that an unknown market never looks like one without events.

import { ApiError } from '../../shared/errors.ts'
import { lobSourceNames, lobSources } from '../../shared/lob-sources.ts'
import type { LobCatalogueEntry, MarketsAsked } from '../../shared/lob-task.ts'
import type { PinnedFiles } from '../lake/pinned-files.ts'
import { type FoundSeries, type MarketFilter, SeriesSearch } from './series-search.ts'

/** The series whose files are read, and which of their markets are requested. */
export interface MarketSelection extends FoundSeries {
  readonly isWanted: MarketFilter
  readonly datesOf: (series: string) => readonly string[]
}

/** The maximum of footers that are read to find out whether the other source has a name. */
const HINT_FILES_MAX = 200

/**
 * Finds the series and markets of a query, in the catalogue's series first. Throws `unknown_market`, `unknown_series`,
 * `ambiguous_market` or, if a file cannot be read, a 503.
 */
export function selectMarkets(
  lake: string,
  query: MarketsAsked,
  catalogue: LobCatalogueEntry | null = null,
  version?: PinnedFiles,
): MarketSelection {
  const { market, series } = query
  const isWanted = marketsWanted(query, catalogue)
  const own = ownSeriesOf(query)
  const search = new SeriesSearch(lake, query, isWanted, [catalogue?.series ?? own, own], version)
  const datesOf = (of: string): readonly string[] => search.datesOf(of)
  if (series !== null && search.datesOf(series).length > 0) {
    return { series, seriesOf: () => series, isWanted: () => true, datesOf }
  }
  const found = search.seriesByDate() ?? search.seriesOfAnyDate()
  if (found !== undefined) return { ...found, isWanted, datesOf }
  search.assertLakeIsThere()
  const elsewhere = lobSources().find(
    (source) => source !== query.source && isKnownTo(source, lake, query, version),
  )
  const hint = elsewhere === undefined ? '' : `It is known to ${elsewhere}: set source=${elsewhere}.`
  const known = `; the series with order books are ${search.describe()}`
  const [code, name] =
    series === null
      ? (['unknown_market', `market ${market} is known`] as const)
      : (['unknown_series', `series or event ${series} is known${known}`] as const)
  throw new ApiError(code, `No ${query.source} ${name}. ${hint}`.trimEnd(), {
    errors: hint === '' ? [] : [{ parameter: 'source', detail: hint }],
  })
}

/** The named market, or those of an event: the ones that the catalogue lists, and those whose tickers begin with the event's. */
function marketsWanted(
  { source, market, series: event }: MarketsAsked,
  catalogue: LobCatalogueEntry | null,
): MarketFilter {
  const { isNamed } = lobSourceNames(source)
  if (event === null) return (id) => isNamed(id, market!)
  const listed = new Set(catalogue?.markets)
  const prefix = `${event}-`
  return (id) => listed.has(id) || id.startsWith(prefix)
}

/** The series under which an import files the requested markets by default. */
function ownSeriesOf({ source, market, series }: MarketsAsked): string {
  return lobSourceNames(source).seriesOf(market ?? series!)
}

function isKnownTo(
  source: MarketsAsked['source'],
  lake: string,
  asked: MarketsAsked,
  version: PinnedFiles | undefined,
): boolean {
  const query = { ...asked, source }
  const { series } = query
  const isWanted = marketsWanted(query, null)
  const search = new SeriesSearch(lake, query, isWanted, [ownSeriesOf(query)], version, HINT_FILES_MAX)
  try {
    return (series !== null && search.datesOf(series).length > 0) || search.seriesOfAnyDate() !== undefined
  } catch {
    // Only a hint: an error in the other source does not fail this request.
    return false
  }
}
