// Hot candles: rows of the relational store, in the form and order of the lake's. The SQL statements leave out rows that a
// registered lake file covers; this module leaves out rows that an unregistered one covers.

import { RECORD_STORE_BATCH_ROWS } from '../../shared/limits.ts'
import {
  plannedCandleRead,
  candleCount,
  type FillBound,
  fillBounds,
  type StoredCandle,
} from '../../shared/sql/candle-queries.ts'
import type { RunStatement } from '../../shared/sql/statement.ts'
import type { CandlePlace, LastCandle } from './candle-lake.ts'
import type { CandlePlan } from './candle-plan.ts'
import { type Candle, CandleRows } from './candle-rows.ts'
import { unregisteredCover, unregisteredOf } from './lake-cover.ts'
import type { RecordRequest } from './record-context.ts'

/**
 * Yields the store's candles by (end, market). With `rowsMax` the caller needs at most that many.
 * @throws {ManifestChanged} when a batch was read under another manifest than the plan's
 */
export async function* readHotCandles(
  plan: CandlePlan,
  rowsMax: number | null,
  { run, signal, context }: RecordRequest,
  after?: CandlePlace,
): AsyncGenerator<CandleRows, void, void> {
  const { readFromMs, query, parts } = plan
  if (!plan.isHotIn(readFromMs, query.toMs)) return
  const isCold = unregisteredCover(parts)
  const pages = context.candleManifest.pages(
    run,
    plan.manifest,
    plannedCandleRead(plan.selection.stored, { fromMs: readFromMs, toMs: query.toMs }),
    {
      batchUnits: Math.min(RECORD_STORE_BATCH_ROWS, rowsMax ?? RECORD_STORE_BATCH_ROWS),
      after: after && { endMs: after.endMs, marketTicker: after.market },
      signal,
    },
  )
  const rows = new CandleRows()
  for await (const page of pages) {
    rows.clear()
    for (const candle of page) {
      if (!isCold(candle.series_ticker, candle.end_period_ts)) rows.push(candleOf(candle))
    }
    if (rows.length > 0) yield rows
  }
}

/** The number of hot candles, counted up to `countMax`. */
export async function countHotCandles(
  plan: CandlePlan,
  countMax: number,
  { run, context }: RecordRequest,
): Promise<number> {
  const range = { fromMs: plan.readFromMs, toMs: plan.query.toMs }
  const statement = candleCount(plan.selection.stored, range, unregisteredOf(plan.parts), countMax)
  return await context.candleManifest.count(run, plan.manifest, statement)
}

/** The store's rows around a window. `generation` is the manifest's at the time of reading. */
export interface HotBounds {
  /** The last candle before the window of each market. */
  readonly bases: readonly LastCandle[]
  /** The last trade of each market that traded in or after the window. */
  readonly lastMs: ReadonlyMap<string, number>
  readonly generation: bigint
}

export async function readHotBounds(
  plan: CandlePlan,
  markets: readonly string[],
  earliestMs: number,
  run: RunStatement,
): Promise<HotBounds> {
  const isCold = unregisteredCover(plan.parts)
  const bases: LastCandle[] = []
  const lastMs = new Map<string, number>()
  let generation = 0n
  const statement = fillBounds(plan.selection.stored, markets, { earliestMs, fromMs: plan.readFromMs })
  for (const row of await run<FillBound>(statement)) {
    const { market_ticker: market, end_period_ts: endMs, close, open_interest: openInterest } = row
    if (row.kind === 'generation') generation = openInterest
    else if (isCold(row.series_ticker, endMs)) continue
    else if (row.kind === 'last') lastMs.set(market, endMs)
    else bases.push({ market, endMs, close, openInterest: Number(openInterest) })
  }
  return { bases, lastMs, generation }
}

function candleOf(stored: StoredCandle): Candle {
  const { market_ticker: market, end_period_ts: endMs, open, high, low, close } = stored
  const [volume, openInterest] = [Number(stored.volume), Number(stored.open_interest)]
  return { market, endMs, open, high, low, close, volume, openInterest, filled: 0 }
}
