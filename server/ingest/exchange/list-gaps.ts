// Whether the exchange's lists can be complete. A list that is truncated or empty by a fault has status 200 like any other. It
// shows only by contradiction: a listed event must have markets, and a settled market stays listed. If nothing is listed and
// nothing is known, the lists are taken as complete.

import { instantValue, listValue, sql } from '../../../shared/sql/statement.ts'
import type { MarketRecord } from '../../storage/catalogue-store.ts'
import type { ExchangeEvent } from '../../exchanges/kalshi/rest-parse.ts'
import type { SourceContext } from '../source.ts'
import { FINAL_STATUS } from './unsettled-markets.ts'

/** What the exchange lists for a series and markets that close at `closeFromMs` or later. */
export interface SeriesLists {
  readonly seriesTicker: string
  readonly closeFromMs: number
  readonly events: readonly ExchangeEvent[]
  /** Of the live and the historical route. */
  readonly markets: readonly MarketRecord[]
}

/** What the lists must lack: tickers in order; empty if nothing is known to be missing. */
export interface ListGaps {
  /** Events listed without a market. */
  readonly empty: readonly string[]
  /** Settled markets that are not listed. */
  readonly absent: readonly string[]
}

export async function listGaps(context: SourceContext, lists: SeriesLists): Promise<ListGaps> {
  return { empty: await emptyEvents(context, lists), absent: await absentMarkets(context, lists) }
}

/** The gaps as text for users; `note` ends each line. */
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

/** Events listed without a market, except those whose markets, by the store, closed before the lists begin. */
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

/** Settled markets of the store that close in the span of the lists and are not listed. */
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
