// Remembered blocks of several markets and files as one stream by (end, market).

import { CandleRows } from './candle-rows.ts'

/** One market's rows of one file that are still to come. */
interface Source {
  readonly block: CandleRows
  readonly market: string
  at: number
  readonly end: number
}

const BATCH_ROWS = 2_048

/** Rows of [fromMs, toMs), at most `rowsMax`. The set that is yielded is used again for the next one. */
export function* mergeBlocks(
  blocks: readonly CandleRows[],
  span: { readonly fromMs: number; readonly toMs: number; readonly rowsMax: number },
): Generator<CandleRows, void, void> {
  const sources = blocks.flatMap((block): Source[] => {
    const at = firstAtOrAfter(block.endMs, block.length, span.fromMs)
    const end = firstAtOrAfter(block.endMs, block.length, span.toMs)
    return at < end ? [{ block, market: block.market[at]!, at, end }] : []
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
  const heap = sources.toSorted((a, b) => (isBefore(a, b) ? -1 : 1))
  while (heap.length > 0 && remaining > 0) {
    const first = heap[0]!
    rows.copy(first.market, first.block.endMs[first.at]!, first.block, first.at)
    remaining--
    first.at++
    if (first.at < first.end) siftDown(heap)
    else removeFirst(heap)
    if (rows.length === BATCH_ROWS) {
      yield rows
      rows.clear()
    }
  }
  if (rows.length > 0) yield rows
}

/** Index of the first end at or after an instant. */
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

function isBefore(left: Source, right: Source): boolean {
  const leftMs = left.block.endMs[left.at]!
  const rightMs = right.block.endMs[right.at]!
  return leftMs < rightMs || (leftMs === rightMs && left.market < right.market)
}

function removeFirst(heap: Source[]): void {
  const last = heap.pop()
  if (last === undefined || heap.length === 0) return
  heap[0] = last
  siftDown(heap)
}

function siftDown(heap: Source[]): void {
  const source = heap[0]!
  let at = 0
  for (;;) {
    let child = 2 * at + 1
    if (child >= heap.length) break
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
    if (!isBefore(heap[child]!, source)) break
    heap[at] = heap[child]!
    at = child
  }
  heap[at] = source
}
