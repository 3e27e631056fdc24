// Two streams of candles by (end, market) as one. A candle is in one of them only.

import { CandleRows, type CandleSink } from './candle-rows.ts'

interface Cursor {
  rows: CandleRows | undefined
  at: number
}

type CandleStream = AsyncGenerator<CandleRows, void, void>

/** Passes every candle to the sink, until both streams end or it is full. */
export async function mergeCandles(left: CandleStream, right: CandleStream, sink: CandleSink): Promise<void> {
  for await (const rows of mergedCandles(left, right)) {
    if (sink.rows !== undefined) sink.rows(rows, 0, rows.length)
    else for (let at = 0; at < rows.length; at++) sink.row(rows.market[at]!, rows.endMs[at]!, rows, at)
    if (sink.isFull) break
  }
}

/** The candles of both. A set that is yielded may be used again for the next one. */
export async function* mergedCandles(left: CandleStream, right: CandleStream): CandleStream {
  const first: Cursor = { rows: undefined, at: 0 }
  const second: Cursor = { rows: undefined, at: 0 }
  const merged = new CandleRows()
  try {
    await advance(first, left)
    await advance(second, right)
    while (first.rows !== undefined || second.rows !== undefined) {
      const only = second.rows === undefined ? first : first.rows === undefined ? second : undefined
      if (only?.rows !== undefined && only.at === 0) {
        only.at = only.rows.length
        yield only.rows
      } else {
        merged.clear()
        takeUntilOneEnds(first, second, merged)
        yield merged
      }
      if (first.rows !== undefined && first.at === first.rows.length) await advance(first, left)
      if (second.rows !== undefined && second.at === second.rows.length) await advance(second, right)
    }
  } finally {
    await left.return()
    await right.return()
  }
}

async function advance(cursor: Cursor, stream: CandleStream): Promise<void> {
  const next = await stream.next()
  cursor.rows = next.done === true ? undefined : next.value
  cursor.at = 0
}

function takeUntilOneEnds(first: Cursor, second: Cursor, merged: CandleRows): void {
  const { rows: a } = first
  const { rows: b } = second
  if (a === undefined || b === undefined) {
    takeRest(a === undefined ? second : first, merged)
    return
  }
  // A batch that has been taken is fetched anew before the other stream may go on.
  while (first.at < a.length && second.at < b.length) {
    const isFirst = isBefore(a, first.at, b, second.at)
    const rows = isFirst ? a : b
    const at = isFirst ? first.at++ : second.at++
    merged.copy(rows.market[at]!, rows.endMs[at]!, rows, at)
  }
}

function takeRest(cursor: Cursor, merged: CandleRows): void {
  const { rows, at } = cursor
  if (rows === undefined) return
  cursor.at = rows.length
  merged.copyAll(rows, at, rows.length)
}

function isBefore(a: CandleRows, atA: number, b: CandleRows, atB: number): boolean {
  const endA = a.endMs[atA]!
  const endB = b.endMs[atB]!
  return endA < endB || (endA === endB && a.market[atA]! < b.market[atB]!)
}
