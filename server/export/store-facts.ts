// What a plan reads from the relational store: close times of markets, and counts of rows that are not in the lake yet.

import { storedIntervalOf } from '../../shared/candle.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import { candleCount, type CandleSelection } from '../../shared/sql/candle-queries.ts'
import { observationCount } from '../../shared/sql/observation-queries.ts'
import { Catalogue } from '../catalogue/catalogue.ts'
import { storeServices } from '../catalogue/store-services.ts'
import { CachePolicy } from '../http/cache-policy.ts'
import type { Postgres } from '../storage/postgres.ts'
import { type DateRange, isLobQuery, type PartQuery } from './export-query.ts'

/** Close times, ms since the epoch, by series and market. */
export type CloseTimes = ReadonlyMap<string, Readonly<Record<string, number>>>

/** Counting stops at this many rows of one part. */
const COUNTED_MAX = 1_000_000

/** The same close times as for a request over the whole range. */
export async function closeTimesOf(
  postgres: Postgres,
  series: readonly string[],
  { from, to }: DateRange,
  signal: AbortSignal,
): Promise<CloseTimes> {
  const catalogue = new Catalogue(new CachePolicy({ isShared: false }))
  for await (const rows of storeServices(postgres).catalogue.markets(null, signal)) catalogue.putMarkets(rows)
  const closesOf = (each: string): Readonly<Record<string, number>> =>
    catalogue.findForLob({ market: null, series: each, dates: [from, to] })?.closesAtMs ?? {}
  return new Map(series.map((each) => [each, closesOf(each)]))
}

/** Rows of a part that the lake's manifest does not cover; COUNTED_MAX means that many or more. */
export async function rowsOutsideLake(postgres: Postgres, query: PartQuery): Promise<number> {
  if (isLobQuery(query) || query.kind === 'trades') return 0
  const statement =
    query.kind === 'candles'
      ? candleCount(candlesOf(query), query, [], COUNTED_MAX)
      : observationCount({ ...query, stationCode: query.station }, query, [], COUNTED_MAX)
  const [row] = await postgres.run<{ readonly rows: bigint }>(statement)
  return Number(row?.rows ?? 0)
}

function candlesOf({ series, interval }: CandleQuery): CandleSelection {
  const seriesTickers = series === null ? null : [series]
  return { interval: storedIntervalOf(interval), marketTicker: null, eventTicker: null, seriesTickers }
}
