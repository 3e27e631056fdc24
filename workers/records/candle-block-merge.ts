// Merges cached blocks of several markets and files into one stream by (end, market).

import { CandleHeap } from './candle-heap.ts'
import { CandleRows } from './candle-rows.ts'

/** The remaining rows of one market in one file. */
interface Source {
  readonly block: CandleRows
  readonly market: string
  at: number
  /** Of the candle at `at`. */
  endMs: number
  readonly end: number
}

const BATCH_ROWS = 2_048

/** Rows of [fromMs, toMs), at most `rowsMax`. The next iteration reuses the yielded set. */
export function* mergeBlocks(
  blocks: readonly CandleRows[],
  span: { readonly fromMs: number; readonly toMs: number; readonly rowsMax: number },
): Generator<CandleRows, void, void> {
  const sources = blocks.flatMap((block): Source[] => {
    const at = firstAtOrAfter(block.endMs, block.length, span.fromMs)
    const end = firstAtOrAfter(block.endMs, block.length, span.toMs)
    return at < end ? [{ block, market: block.market[at]!, at, endMs: block.endMs[at]!, end }] : []
  })
  if (sources.length === 1) {
    const [{ block, at, end }] = sources as [Source]
    const rows = new CandleRows(end - at)
    rows.copyAll(block, at, Math.min(end, at + span.rowsMax))
    yield rows
    return
  }
  const rows = new CandleRows(BATCH_ROWS)
  let remaining = span.rowsMax
  const heap = new CandleHeap<Source>()
  for (const source of sources) heap.push(source)
  while (heap.first !== undefined && remaining > 0) {
    const { first } = heap
    rows.copy(first.market, first.endMs, first.block, first.at)
    remaining--
    first.at++
    if (first.at < first.end) {
      first.endMs = first.block.endMs[first.at]!
      heap.settleFirst()
    } else heap.shift()
    if (rows.length === BATCH_ROWS) {
      yield rows
      rows.clear()
    }
  }
  if (rows.length > 0) yield rows
}

export function firstAtOrAfter(ends: Float64Array, length: number, instantMs: number): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ends[middle]! < instantMs) low = middle + 1
    else high = middle
  }
  return low
}
