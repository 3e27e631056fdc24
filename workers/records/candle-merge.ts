// Two streams of candles by (end, market) as one. A candle is in one of them only.

import { CandleRows, type CandleSink } from './candle-rows.ts'

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

/** The same as a stream. A set that is yielded may be used again for the next one. */
export async function* mergedCandles(left: CandleStream, right: CandleStream): CandleStream {
  const first: Cursor = { rows: undefined, at: 0 }
  const second: Cursor = { rows: undefined, at: 0 }
  const merged = new CandleRows()
  const sink: CandleSink = {
    isFull: false,
    row: (market, endMs, values, at) => void merged.copy(market, endMs, values, at),
    rows: (values, from, to) => merged.copyAll(values, from, to),
    finish: () => {},
  }
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
        passUntilOneEnds(first, second, sink)
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

function passUntilOneEnds(first: Cursor, second: Cursor, sink: CandleSink): void {
  const { rows: a } = first
  const { rows: b } = second
  if (a === undefined || b === undefined) {
    passAll(a === undefined ? second : first, sink)
    return
  }
  // A batch that has been passed on is fetched anew before the other stream may go on.
  while (!sink.isFull && first.at < a.length && second.at < b.length) {
    const isFirst = isBefore(a, first.at, b, second.at)
    const rows = isFirst ? a : b
    const at = isFirst ? first.at++ : second.at++
    sink.row(rows.market[at]!, rows.endMs[at]!, rows, at)
  }
}

/** Passes on the rest of a batch. */
function passAll(cursor: Cursor, sink: CandleSink): void {
  const { rows, at } = cursor
  if (rows === undefined || at === rows.length) return
  cursor.at = rows.length
  if (sink.rows !== undefined) sink.rows(rows, at, rows.length)
  else for (let row = at; row < rows.length; row++) sink.row(rows.market[row]!, rows.endMs[row]!, rows, row)
}

function isBefore(a: CandleRows, atA: number, b: CandleRows, atB: number): boolean {
  const endA = a.endMs[atA]!
  const endB = b.endMs[atB]!
  return endA < endB || (endA === endB && a.market[atA]! < b.market[atB]!)
}
