// Whether the exchange's lists can be complete. A list that is truncated or empty by a fault has status 200 like any other. It
// shows only by contradiction: a listed event must have markets, and a settled market stays listed. If nothing is listed and
// nothing is known, the lists are taken as complete.

import { groupedBy } from '../../../shared/grouped-by.ts'
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

/** What the lists must lack: an event listed without a market, or a settled market that is not listed. */
export interface ListGap {
  readonly kind: 'event' | 'settled market'
  readonly ticker: string
}

/** Events before markets, each in the order of their tickers; empty if nothing is known to be missing. */
export async function listGaps(context: SourceContext, lists: SeriesLists): Promise<readonly ListGap[]> {
  const events = await emptyEvents(context, lists)
  const markets = await absentMarkets(context, lists)
  return [
    ...events.map((ticker) => ({ kind: 'event' as const, ticker })),
    ...markets.map((ticker) => ({ kind: 'settled market' as const, ticker })),
  ]
}

const WRONG = { event: 'listed without a market', 'settled market': 'not listed' } as const

/** The gaps as text for users; `note` ends each line. */
export function gapProblems(seriesTicker: string, gaps: readonly ListGap[], note = ''): readonly string[] {
  return [...groupedBy(gaps, ({ kind }) => kind)].map(([kind, [{ ticker }, ...others]]) => {
    const count = 1 + others.length
    const are = count === 1 ? `1 ${kind} of ${seriesTicker} is` : `${count} ${kind}s of ${seriesTicker} are`
    return `${are} ${WRONG[kind]}, first ${ticker}${note}`
  })
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
