// Merges two streams of candles that are sorted by (end, market).

import { CandleRows, type CandleSink } from './candle-rows.ts'
import { mergedRows, type RowStream, type Taken } from './merged-rows.ts'

/** Passes every candle to the sink until both streams end or the sink is full. */
export async function mergeCandles(
  left: RowStream<CandleRows>,
  right: RowStream<CandleRows>,
  sink: CandleSink,
): Promise<void> {
  for await (const rows of mergedCandles(left, right)) {
    sink.rows(rows, 0, rows.length)
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
    rest({ rows, at }) {
      merged.clear()
      merged.copyAll(rows, at, rows.length)
      return merged
    },
    untilOneEnds(a, b) {
      merged.clear()
      while (a.at < a.rows.length && b.at < b.rows.length) {
        const first = isBefore(a, b) ? a : b
        merged.copy(first.rows, first.at++)
      }
      return merged
    },
  })
}

function isBefore(a: Taken<CandleRows>, b: Taken<CandleRows>): boolean {
  const endA = a.rows.endMs[a.at]!
  const endB = b.rows.endMs[b.at]!
  return endA < endB || (endA === endB && a.rows.market[a.at]! < b.rows.market[b.at]!)
}
