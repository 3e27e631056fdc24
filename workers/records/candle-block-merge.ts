// Merges cached blocks of several markets and files by (end, market).

import { CandleRows } from './candle-rows.ts'

/** Sources whose next candles are compared only at instants at which one of them has a candle. */
const GROUP = 64

/** The rows of [fromMs, toMs), at most `rowsMax`. */
export function mergeBlocks(
  blocks: readonly CandleRows[],
  { fromMs, toMs, rowsMax }: { readonly fromMs: number; readonly toMs: number; readonly rowsMax: number },
): CandleRows {
  const sources = blocks
    .map((block) => ({ block, at: firstAtOrAfter(block, fromMs) }))
    .filter(({ block, at }) => at < block.length)
    .toSorted((a, b) => (a.block.market[0]! < b.block.market[0]! ? -1 : 1))
  const ends = Float64Array.from(sources, ({ block, at }) => block.endMs[at]!)
  const firsts = new Float64Array(Math.ceil(ends.length / GROUP)).fill(-Infinity)
  const rows = new CandleRows()
  /** Appends the candles of an instant, and returns the end of the next one of the group. */
  const take = (group: number, endMs: number): number => {
    let first = Infinity
    for (let index = group * GROUP; index < ends.length && index < (group + 1) * GROUP; index++) {
      if (ends[index] === endMs) {
        const source = sources[index]!
        if (rows.length < rowsMax) rows.copy(source.block, source.at++)
        ends[index] = source.at < source.block.length ? source.block.endMs[source.at]! : Infinity
      }
      if (ends[index]! < first) first = ends[index]!
    }
    return first
  }
  for (let endMs = -Infinity, nextMs = endMs; endMs < toMs && rows.length < rowsMax; endMs = nextMs) {
    nextMs = Infinity
    for (let group = 0; group < firsts.length; group++) {
      if (firsts[group] === endMs) firsts[group] = take(group, endMs)
      if (firsts[group]! < nextMs) nextMs = firsts[group]!
    }
  }
  return rows
}

/** The index of the first row that ends at an instant or after it, in rows in time order. */
export function firstAtOrAfter({ endMs, length }: CandleRows, instantMs: number): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (endMs[middle]! < instantMs) low = middle + 1
    else high = middle
  }
  return low
}
