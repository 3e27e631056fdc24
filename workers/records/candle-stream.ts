// Long pages of candles as they are stored: counted, and then read while they are sent, so that a page of half a million
// candles takes no more memory than a short one. When candles move to the lake in the midst of it, the rest is planned
// anew and goes on behind the last candle.

import { JSON_ROWS_MAX } from '../../shared/formats.ts'
import { ApiError } from '../../shared/errors.ts'
import { RECORD_PLAN_ATTEMPTS_MAX } from '../../shared/limits.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import { countHotCandles, readHotCandles } from './candle-hot.ts'
import type { CandlePlace, ColdCandles } from './candle-lake.ts'
import { mergedCandles } from './candle-merge.ts'
import { type CandlePlan, coldCandles, makeCandlePlan } from './candle-plan.ts'
import { CandleRows } from './candle-rows.ts'
import { checkUnchanged } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'
import { isPlanStale, movedError } from './stale-plan.ts'

/** The candles of a page. */
export interface CandleStretch {
  readonly rows: number
  readonly hasMore: boolean
  /** In order; a set may be used again for the next one. */
  readonly sets: () => Iterable<CandleRows> | AsyncIterable<CandleRows>
}

/** Whether a page is streamed: it is long, and nothing is made out of the candles. */
export function isStreamed({ fill, limit }: CandleQuery, bucketMinutes: number | null): boolean {
  return !fill && bucketMinutes === null && limit > JSON_ROWS_MAX
}

/** Counts the page of a plan. */
export async function streamCandles(
  plan: CandlePlan,
  cold: ColdCandles,
  isHot: boolean,
  request: RecordRequest,
): Promise<CandleStretch> {
  const { query, selection } = plan
  if (selection.isEmpty) return { rows: 0, hasMore: false, sets: () => [] }
  const { context, signal } = request
  const coldCount = await context.candleLake.count(cold, signal)
  const hotCount = isHot ? await countHotCandles(plan, query.offset + query.limit + 1, request) : 0
  checkUnchanged(cold.parts)
  const total = coldCount + hotCount
  const rows = Math.max(0, Math.min(total - query.offset, query.limit))
  const hasMore = total > query.offset + query.limit
  return { rows, hasMore, sets: () => readPage(plan, { rows, hasMore }, request) }
}

/**
 * Candles that come meanwhile push none out: where no page behind this one is named, it goes on to the end of what there is.
 */
async function* readPage(
  firstPlan: CandlePlan,
  { rows, hasMore }: { readonly rows: number; readonly hasMore: boolean },
  request: RecordRequest,
): AsyncGenerator<CandleRows, void, void> {
  if (rows === 0) return
  const { query } = firstPlan
  const part = new CandleRows()
  let plan = firstPlan
  let attempt = 1
  let toSkip = query.offset
  let taken = 0
  let rowsMax = rows
  let after: CandlePlace | undefined
  for (;;) {
    try {
      let isOverfull = false
      const wanted = toSkip + rowsMax - taken + (hasMore ? 0 : 1)
      for await (const set of readCandles(plan, after, wanted, request)) {
        const from = Math.min(toSkip, set.length)
        const to = Math.min(set.length, from + rowsMax - taken)
        isOverfull = to < set.length
        if (to > 0) {
          attempt = 1
          after = { endMs: set.endMs[to - 1]!, market: set.market[to - 1]! }
          toSkip -= from
          taken += to - from
          if (to - from === set.length) yield set
          else if (to > from) {
            part.clear()
            part.copyAll(set, from, to)
            yield part
          }
        }
        if (isOverfull || (hasMore && taken === rows)) break
      }
      if (hasMore && taken === rows) return
      if (taken < rows) throw new ApiError('lake_file_changed', 'Candles went away while they were read.')
      if (!isOverfull) return
      if (rowsMax === query.limit)
        throw new ApiError('lake_file_changed', 'More candles came while they were read.')
      rowsMax = query.limit
    } catch (error) {
      if (!isPlanStale(error)) throw error
      if (attempt++ >= RECORD_PLAN_ATTEMPTS_MAX) throw movedError('Candles', error)
      request.context.candleManifest.forget()
      plan = await makeCandlePlan(query, null, request)
    }
  }
}

/** The candles behind a place, of which so many are wanted. Every set was read in the state that was planned with. */
async function* readCandles(
  plan: CandlePlan,
  after: CandlePlace | undefined,
  rowsMax: number,
  request: RecordRequest,
): AsyncGenerator<CandleRows, void, void> {
  const hot = readHotCandles(plan, rowsMax, request, after)
  yield* mergedCandles(readCold({ ...coldCandles(plan), after }, rowsMax, request), hot)
}

async function* readCold(
  wanted: ColdCandles,
  rowsMax: number,
  { context, signal }: RecordRequest,
): AsyncGenerator<CandleRows, void, void> {
  const { parts } = wanted
  let isChecked = false
  for await (const rows of context.candleLake.read(wanted, rowsMax, signal)) {
    // DuckDB sorts, so it has read the files to their ends before it gives the first candle.
    if (!isChecked) checkUnchanged(parts)
    isChecked = true
    yield rows
  }
  if (!isChecked) checkUnchanged(parts)
}
