// Candles as DuckDB gives them: which columns are asked for, and how they get into CandleRows.

import type { DuckDBDataChunk } from '@duckdb/node-api'
import type { CandleRows } from './candle-rows.ts'
import { sqlText, sqlTexts } from './duck-lake.ts'
import { copyNumbers } from './duck-vectors.ts'

/** The values of a candle as they are stored: what DuckDB sorts is as narrow as can be. */
const VALUES = `epoch_ms(end_period_ts) AS end_ms, open, high, low, close, volume, open_interest`

/** The rows of some markets, numbered by their place in the list: for `appendCandles`. In any order where none is given. */
export function codedCandlesSql(
  source: string,
  markets: readonly string[],
  { order, behind = '' }: { readonly order?: string; readonly behind?: string } = {},
): string {
  return (
    `SELECT code, ${VALUES} FROM ${source} rows JOIN ` +
    `(SELECT unnest(${sqlTexts(markets)}) AS ticker, unnest(range(0, ${markets.length}))::INTEGER AS code) markets` +
    ` ON rows.market_ticker = markets.ticker ${behind}${order === undefined ? '' : ` ORDER BY ${order}`}`
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
    // The index lets no file with a null pass.
    copyNumbers(chunk.getColumnVector(1 + column), target, start)
  }
  rows.filled.fill(0, start, start + rowCount)
  const codes = new Float64Array(rowCount)
  copyNumbers(chunk.getColumnVector(0), codes, 0)
  for (let row = 0; row < rowCount; row++) rows.market[start + row] = markets[codes[row]!]!
}
