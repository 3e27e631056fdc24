// The markets of the stored catalogue that traded, or could have, in a span of time.

import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { instantValue, sql, whereAll } from '../../../shared/sql/statement.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { SourceContext } from '../source.ts'
import type { MarketName } from '../../exchanges/kalshi/rest-parse.ts'

interface Row {
  readonly ticker: string
  readonly event_ticker: string
  readonly series_ticker: string
}

/** By ticker, for one series or for all. A day is added to the close time, because the last daily candle ends after it. */
export async function candleMarkets(
  { postgres, signal }: SourceContext,
  { fromMs, toMs }: TimeWindow,
  seriesTicker?: string,
): Promise<readonly MarketName[]> {
  const conditions = whereAll(
    sql`close_time >= ${instantValue(fromMs - MS_PER_DAY)}`,
    sql`coalesce(open_time, close_time) <= ${instantValue(toMs)}`,
    seriesTicker !== undefined && sql`series_ticker = ${seriesTicker}`,
  )
  const rows = await postgres.run<Row>(
    sql`SELECT ticker, event_ticker, series_ticker FROM markets ${conditions} ORDER BY ticker`,
    { signal },
  )
  return rows.map((row) => ({
    ticker: row.ticker,
    eventTicker: row.event_ticker,
    seriesTicker: row.series_ticker,
  }))
}
