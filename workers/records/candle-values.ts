// Candles as DuckDB gives them: which columns are asked for, and how they get into CandleRows.

import { type DuckDBDataChunk, DuckDBDoubleVector, type DuckDBVector } from '@duckdb/node-api'
import type { CandleRows } from './candle-rows.ts'
import { sqlText, sqlTexts } from './duck-lake.ts'

/** The values of a candle, all as doubles: one kind of vector makes one fast loop. */
const VALUES =
  `epoch_ms(end_period_ts)::DOUBLE AS end_ms, open::DOUBLE, high::DOUBLE, low::DOUBLE, close::DOUBLE,` +
  ` volume::DOUBLE, open_interest::DOUBLE`

/** The rows of some markets, numbered by their place in the list: for `appendCandles`. */
export function codedCandlesSql(
  source: string,
  markets: readonly string[],
  { order, behind = '' }: { readonly order: string; readonly behind?: string },
): string {
  return (
    `SELECT code, ${VALUES} FROM ${source} rows JOIN ` +
    `(SELECT unnest(${sqlTexts(markets)}) AS ticker, unnest(range(0, ${markets.length}))::DOUBLE AS code) markets` +
    ` ON rows.market_ticker = markets.ticker ${behind} ORDER BY ${order}`
  )
}

/**
 * A condition that all of some markets (sorted) meet: files are sorted by market, so it tells DuckDB which row groups to
 * leave alone. Only of ASCII is the order of texts the same here and there.
 */
export function marketBoundsSql(markets: readonly string[]): string {
  const [first, last] = [markets[0], markets.at(-1)]
  if (first === undefined || last === undefined || !markets.every(isAscii)) return 'true'
  return `market_ticker BETWEEN ${sqlText(first)} AND ${sqlText(last)}`
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 0x7f) return false
  return true
}

/** Appends a chunk of `codedCandlesSql`. */
export function appendCandles(rows: CandleRows, chunk: DuckDBDataChunk, markets: readonly string[]): void {
  const { rowCount } = chunk
  const start = rows.reserve(rowCount)
  const targets = [rows.endMs, rows.open, rows.high, rows.low, rows.close, rows.volume, rows.openInterest]
  for (const [column, target] of targets.entries()) {
    copyDoubles(chunk.getColumnVector(1 + column), target, start, rowCount)
  }
  rows.filled.fill(0, start, start + rowCount)
  const codes = chunk.getColumnVector(0)
  if (!(codes instanceof DuckDBDoubleVector)) throw new Error('the codes of markets are not doubles')
  for (let row = 0; row < rowCount; row++) rows.market[start + row] = markets[codes.getItem(row)!]!
}

function copyDoubles(vector: DuckDBVector, target: Float64Array, start: number, count: number): void {
  if (!(vector instanceof DuckDBDoubleVector)) throw new Error('a column is not of doubles')
  // The index lets no file with a null pass.
  for (let row = 0; row < count; row++) target[start + row] = vector.getItem(row)!
}
