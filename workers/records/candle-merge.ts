// Merges two streams of candles that are sorted by (end, market).

import { CandleRows } from './candle-rows.ts'
import { mergedRows, type RowStream } from './merged-rows.ts'

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
