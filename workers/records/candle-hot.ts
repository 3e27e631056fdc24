// Hot candles from the relational store, in the form and order of the cold ones. Rows for which an unregistered lake
// file counts are left out; those that a registered one covers the statements leave out themselves.

import { RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import {
  type CandleRange,
  candleRead,
  type CandleSelection,
  lastCandlesBefore,
  lastTradesFrom,
  type StoredCandle,
} from '../../shared/sql/candle-queries.ts'
import { keysetPages } from '../../shared/sql/keyset-pages.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import type { IndexedPart } from './candle-index.ts'
import type { LastCandle } from './candle-lake.ts'
import { CandleRows } from './candle-rows.ts'
import type { RecordRequest } from './record-context.ts'

/** Whether an unregistered file counts for a candle. */
export type IsCold = (series: string, endMs: number) => boolean

export function unregisteredCover(parts: readonly IndexedPart[]): IsCold {
  const unregistered = parts.map(({ part }) => part).filter((part) => !part.isRegistered)
  if (unregistered.length === 0) return () => false
  return (series, endMs) =>
    unregistered.some((part) => part.scope === series && part.fromMs <= endMs && endMs < part.toMs)
}

/** Candles by (end, market); with `rowsMax` no more than that many are wanted. */
export async function* readHotCandles(
  selection: CandleSelection,
  range: CandleRange,
  options: { readonly isCold: IsCold; readonly rowsMax: number | null },
  { run, signal }: RecordRequest,
): AsyncGenerator<CandleRows, void, void> {
  const limit = options.rowsMax ?? undefined
  const pages = keysetPages(run, candleRead(selection, range), {
    batchUnits: Math.min(RECORD_STORE_BATCH_ROWS, limit ?? RECORD_STORE_BATCH_ROWS),
    signal,
  })
  const rows = new CandleRows()
  for await (const page of pages) {
    rows.clear()
    for (const candle of page) {
      if (!options.isCold(candle.series_ticker, candle.end_period_ts)) appendStored(rows, candle)
    }
    if (rows.length > 0) yield rows
  }
}

/** The last candle of each market before an instant. */
export async function lastHotBefore(
  selection: CandleSelection,
  beforeMs: number,
  isCold: IsCold,
  run: RunStatement,
): Promise<LastCandle[]> {
  const candles = await run<StoredCandle>(lastCandlesBefore(selection, beforeMs))
  return candles
    .filter((candle) => !isCold(candle.series_ticker, candle.end_period_ts))
    .map((candle) => ({
      market: candle.market_ticker,
      endMs: candle.end_period_ts,
      close: candle.close,
      openInterest: Number(candle.open_interest),
    }))
}

/** When each market traded last, of those that did at or after an instant. */
export async function lastHotTrades(
  selection: CandleSelection,
  fromMs: number,
  run: RunStatement,
): Promise<ReadonlyMap<string, number>> {
  const rows = await run<{ readonly market_ticker: string; readonly last_end: number }>(
    lastTradesFrom(selection, fromMs),
  )
  return new Map(rows.map(({ market_ticker: market, last_end: endMs }) => [market, endMs]))
}

function appendStored(rows: CandleRows, candle: StoredCandle): void {
  const at = rows.append(candle.market_ticker, candle.end_period_ts)
  rows.open[at] = candle.open
  rows.high[at] = candle.high
  rows.low[at] = candle.low
  rows.close[at] = candle.close
  rows.volume[at] = Number(candle.volume)
  rows.openInterest[at] = Number(candle.open_interest)
  rows.filled[at] = 0
}
