// Long pages of stored candles, without fill or roll-up: they are counted first, and then read while they are sent
// (counted-page.ts).

import { JSON_ROWS_MAX } from '../../shared/formats.ts'
import type { CandleQuery } from '../../shared/record-task.ts'
import { countHotCandles, readHotCandles } from './candle-hot.ts'
import type { CandlePlace, ColdCandles } from './candle-lake.ts'
import { mergedCandles } from './candle-merge.ts'
import { type CandlePlan, coldCandles, makeCandlePlan } from './candle-plan.ts'
import type { CandleRows } from './candle-rows.ts'
import { type CountedPage, pageOf, type PageSource, readPage, type Stretch } from './counted-page.ts'
import { checkUnchanged, unchangedBefore } from './lake-partitions.ts'
import type { RecordRequest } from './record-context.ts'

/** The candles of a page, in order. The next iteration may reuse a set. */
export interface CandleStretches extends CountedPage {
  readonly sets: () => Iterable<Stretch<CandleRows>> | AsyncIterable<Stretch<CandleRows>>
}

/** Whether a page is streamed: it is long, and its candles are served as they are stored. */
export function isStreamed({ fill, limit }: CandleQuery, bucketMinutes: number | null): boolean {
  return !fill && bucketMinutes === null && limit > JSON_ROWS_MAX
}

/** Counts the page of a plan. */
export async function streamCandles(
  plan: CandlePlan,
  cold: ColdCandles,
  isHot: boolean,
  request: RecordRequest,
): Promise<CandleStretches> {
  const { query } = plan
  const { context, signal } = request
  const coldCount = await context.candleLake.count(cold, signal)
  const hotCount = isHot ? await countHotCandles(plan, query.offset + query.limit + 1, request) : 0
  checkUnchanged(cold.parts)
  const counted = pageOf(coldCount + hotCount, query)
  const source: PageSource<CandlePlan, CandleRows, CandlePlace> = {
    noun: 'Candles',
    plan,
    planAnew: () => makeCandlePlan(query, null, request),
    forget: () => context.candleManifest.forget(),
    read: (newest, after, rowsMax) => readCandles(newest, after, rowsMax, request),
    placeOf: (rows, at) => ({ endMs: rows.endMs[at]!, market: rows.market[at]! }),
  }
  return { ...counted, sets: () => readPage(query, counted, source) }
}

function readCandles(
  plan: CandlePlan,
  after: CandlePlace | undefined,
  rowsMax: number,
  request: RecordRequest,
): AsyncGenerator<CandleRows, void, void> {
  const cold = { ...coldCandles(plan), after }
  const read = request.context.candleLake.read(cold, rowsMax, request.signal)
  return mergedCandles(unchangedBefore(cold.parts, read), readHotCandles(plan, rowsMax, request, after))
}
