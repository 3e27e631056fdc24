// The markets that traded, or could have, in a span of time, from the stored catalogue.

import { MS_PER_DAY } from '../../../shared/utc-date.ts'
import { StatementBuilder } from '../../../shared/sql/statement.ts'
import type { SourceContext } from '../source.ts'
import type { MarketName } from './parse.ts'

export interface CandleMarket extends MarketName {
  /** When it was settled, or closed while that is not known; milliseconds. */
  readonly settledAtMs: number
}

export interface CandleMarketQuery {
  /** Null is every series. */
  readonly seriesTicker: string | null
  readonly fromMs: number
  readonly toMs: number
}

interface Row {
  readonly ticker: string
  readonly event_ticker: string
  readonly series_ticker: string
  readonly settled_at: number
}

/** By ticker. A day is added to the close time: the last daily candle ends after it. */
export async function candleMarkets(
  { postgres, signal }: SourceContext,
  { seriesTicker, fromMs, toMs }: CandleMarketQuery,
): Promise<readonly CandleMarket[]> {
  const statement = new StatementBuilder()
  statement.where(`close_time >= ${statement.addInstant(fromMs - MS_PER_DAY)}`)
  statement.where(`coalesce(open_time, close_time) <= ${statement.addInstant(toMs)}`)
  if (seriesTicker !== null) statement.where(`series_ticker = ${statement.add(seriesTicker, 'text')}`)
  const rows = await postgres.run<Row>(
    statement.build(
      'SELECT ticker, event_ticker, series_ticker, coalesce(settlement_ts, close_time) AS settled_at FROM markets' +
        ` ${statement.whereClause} ORDER BY ticker`,
    ),
    { signal },
  )
  return rows.map((row) => ({
    ticker: row.ticker,
    eventTicker: row.event_ticker,
    seriesTicker: row.series_ticker,
    settledAtMs: row.settled_at,
  }))
}
