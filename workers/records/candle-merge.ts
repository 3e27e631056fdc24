// Merges two streams of candles that are sorted by (end, market).

import { CandleRows, type CandleSink } from './candle-rows.ts'
import { mergedRows, type RowStream } from './merged-rows.ts'

/** Passes every candle to the sink until both streams end or the sink is full. */
export async function mergeCandles(
  left: RowStream<CandleRows>,
  right: RowStream<CandleRows>,
  sink: CandleSink,
): Promise<void> {
  for await (const rows of mergedCandles(left, right)) {
    sink.take(rows)
    if (sink.isFull) break
  }
}

/** The candles of both streams. The next iteration may reuse the yielded set. */
export function mergedCandles(
  left: RowStream<CandleRows>,
  right: RowStream<CandleRows>,
): RowStream<CandleRows> {
  const merged = new CandleRows()
  return mergedRows(left, right, {
    empty() {
      merged.clear()
      return merged
    },
    append: (to, rows, at) => to.copy(rows, at),
    isBefore: (a, atA, b, atB) =>
      a.endMs[atA]! < b.endMs[atB]! || (a.endMs[atA] === b.endMs[atB] && a.market[atA]! < b.market[atB]!),
  })
}
