// Whether the exchange's lists can be all there is. A list that is cut or empty by a fault is answered with status 200
// like any other; it shows only where something else says that there must be more: an event that is listed has markets,
// and a market that was settled stays listed. Where nothing is listed and nothing is known, there is nothing.

import { instantValue, listValue, sql } from '../../../shared/sql/statement.ts'
import type { MarketRecord } from '../../storage/catalogue-store.ts'
import type { ExchangeEvent } from '../../exchanges/kalshi/rest-parse.ts'
import type { SourceContext } from '../source.ts'
import { FINAL_STATUS } from './unsettled-markets.ts'

/** What the exchange lists of a series for markets that close at `closeFromMs` or later. */
export interface SeriesLists {
  readonly seriesTicker: string
  readonly closeFromMs: number
  readonly events: readonly ExchangeEvent[]
  /** Of the live and the historical route. */
  readonly markets: readonly MarketRecord[]
}

/** What must be missing in the lists; both are tickers in order, and empty where nothing is known to be. */
export interface ListGaps {
  /** Events listed without a market. */
  readonly empty: readonly string[]
  /** Settled markets that are not listed. */
  readonly absent: readonly string[]
}

export async function listGaps(context: SourceContext, lists: SeriesLists): Promise<ListGaps> {
  return { empty: await emptyEvents(context, lists), absent: await absentMarkets(context, lists) }
}

/** The same for people; `note` ends each line. */
export function gapProblems(seriesTicker: string, { empty, absent }: ListGaps, note = ''): readonly string[] {
  const say = (tickers: readonly string[], what: string, wrong: string): string[] => {
    if (tickers.length === 0) return []
    const are =
      tickers.length === 1
        ? `1 ${what} of ${seriesTicker} is`
        : `${tickers.length} ${what}s of ${seriesTicker} are`
    return [`${are} ${wrong}, first ${tickers[0]}${note}`]
  }
  return [...say(empty, 'event', 'listed without a market'), ...say(absent, 'settled market', 'not listed')]
}

/** Events listed without a market, but for those of the store whose markets closed before the lists begin. */
async function emptyEvents(
  { postgres, signal }: SourceContext,
  { seriesTicker, closeFromMs, events, markets }: SeriesLists,
): Promise<readonly string[]> {
  const filled = new Set(markets.map(({ event_ticker }) => event_ticker))
  const empty = new Set(events.map(({ ticker }) => ticker).filter((ticker) => !filled.has(ticker)))
  if (empty.size === 0) return []
  const past = await postgres.run<{ readonly event_ticker: string }>(
    sql`SELECT DISTINCT event_ticker FROM markets WHERE series_ticker = ${seriesTicker}
      AND event_ticker = ANY (${listValue([...empty])}) AND close_time < ${instantValue(closeFromMs)}`,
    { signal },
  )
  for (const { event_ticker } of past) empty.delete(event_ticker)
  return [...empty].toSorted()
}

/** Settled markets of the store that close within the lists and are not in them. */
async function absentMarkets(
  { postgres, signal }: SourceContext,
  { seriesTicker, closeFromMs, markets }: SeriesLists,
): Promise<readonly string[]> {
  const present = listValue(markets.map(({ ticker }) => ticker))
  const rows = await postgres.run<{ readonly ticker: string }>(
    sql`SELECT ticker FROM markets WHERE series_ticker = ${seriesTicker} AND status = ${FINAL_STATUS}
      AND close_time >= ${instantValue(closeFromMs)} AND ticker <> ALL (${present}) ORDER BY ticker`,
    { signal },
  )
  return rows.map(({ ticker }) => ticker)
}
