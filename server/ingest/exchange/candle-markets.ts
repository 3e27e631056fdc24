// The markets of the stored catalogue that traded, or could have, in a span of time.

import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { instantValue, sql, whereAll } from '../../../shared/sql/statement.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { SourceContext } from '../source.ts'
import type { MarketName } from '../../exchanges/kalshi/rest-parse.ts'

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
  return await postgres.run<MarketName>(
    sql`SELECT ticker, event_ticker AS "eventTicker", series_ticker AS "seriesTicker"
      FROM markets ${conditions} ORDER BY ticker`,
    { signal },
  )
}
