// The markets that traded, or could have, in a span of time, from the stored catalogue.

import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { StatementBuilder } from '../../../shared/sql/statement.ts'
import type { TimeWindow } from '../../storage/cursor-store.ts'
import type { SourceContext } from '../source.ts'
import type { MarketName } from '../../exchanges/kalshi/rest-parse.ts'

interface Row {
  readonly ticker: string
  readonly event_ticker: string
  readonly series_ticker: string
}

/** By ticker; of one series, or of all. A day is added to the close time: the last daily candle ends after it. */
export async function candleMarkets(
  { postgres, signal }: SourceContext,
  { fromMs, toMs }: TimeWindow,
  seriesTicker?: string,
): Promise<readonly MarketName[]> {
  const statement = new StatementBuilder()
  statement.where(`close_time >= ${statement.addInstant(fromMs - MS_PER_DAY)}`)
  statement.where(`coalesce(open_time, close_time) <= ${statement.addInstant(toMs)}`)
  if (seriesTicker !== undefined) statement.where(`series_ticker = ${statement.add(seriesTicker, 'text')}`)
  const rows = await postgres.run<Row>(
    statement.build(
      `SELECT ticker, event_ticker, series_ticker FROM markets ${statement.whereClause} ORDER BY ticker`,
    ),
    { signal },
  )
  return rows.map((row) => ({
    ticker: row.ticker,
    eventTicker: row.event_ticker,
    seriesTicker: row.series_ticker,
  }))
}
