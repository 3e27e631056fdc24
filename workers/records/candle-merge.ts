// Two streams of candles by (end, market) as one. A candle is in one of them only.

import type { CandleRows, CandleSink } from './candle-rows.ts'

interface Cursor {
  rows: CandleRows | undefined
  at: number
}

type CandleStream = AsyncGenerator<CandleRows, void, void>

/** Passes every candle to the sink, until both streams end or it is full. */
export async function mergeCandles(left: CandleStream, right: CandleStream, sink: CandleSink): Promise<void> {
  const first: Cursor = { rows: undefined, at: 0 }
  const second: Cursor = { rows: undefined, at: 0 }
  try {
    await advance(first, left)
    await advance(second, right)
    while (!sink.isFull && (first.rows !== undefined || second.rows !== undefined)) {
      passUntilOneEnds(first, second, sink)
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

function passUntilOneEnds(first: Cursor, second: Cursor, sink: CandleSink): void {
  const { rows: a } = first
  const { rows: b } = second
  while (!sink.isFull) {
    const hasA = a !== undefined && first.at < a.length
    const hasB = b !== undefined && second.at < b.length
    // A batch that has been passed on is fetched anew before the other stream may go on.
    if ((a !== undefined && !hasA) || (b !== undefined && !hasB)) return
    if (a !== undefined && (b === undefined || isBefore(a, first.at, b, second.at))) {
      sink.row(a.market[first.at]!, a.endMs[first.at]!, a, first.at)
      first.at++
    } else if (b !== undefined) {
      sink.row(b.market[second.at]!, b.endMs[second.at]!, b, second.at)
      second.at++
    } else return
  }
}

function isBefore(a: CandleRows, atA: number, b: CandleRows, atB: number): boolean {
  const endA = a.endMs[atA]!
  const endB = b.endMs[atB]!
  return endA < endB || (endA === endB && a.market[atA]! < b.market[atB]!)
}
