// Candles as DuckDB gives them: which columns are asked for, and how they get into CandleRows.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import type { DuckDBDataChunk } from '@duckdb/node-api'
import type { IndexedPart } from './candle-index.ts'
import type { CandleRows } from './candle-rows.ts'
import { sqlText } from './duck-lake.ts'
import { copyNumbers } from './duck-vectors.ts'

/** The values of a candle as they are stored: what DuckDB sorts is as narrow as can be. */
const VALUES = 'open, high, low, close, volume, open_interest'

/**
 * The candles of some markets (sorted, at least one), for `appendCandles`, in any order where none is given. A market is a
 * value of an ENUM, its place in the list: it is found faster than by a join, and sorted without comparing texts.
 */
export function codedCandlesSql(
  source: string,
  markets: readonly string[],
  { where = 'true', order }: { readonly where?: string; readonly order?: string } = {},
): string {
  const places = `ENUM(${markets.map(sqlText).join(',')})`
  return (
    `SELECT enum_code(market)::INTEGER AS code, end_ms, ${VALUES} FROM (SELECT try_cast(market_ticker AS ${places}) AS market,` +
    ` epoch_ms(end_period_ts) AS end_ms, ${VALUES} FROM ${source} rows) WHERE market IS NOT NULL AND (${where})` +
    (order === undefined ? '' : ` ORDER BY ${order}`)
  )
}

/**
 * The condition that keeps some markets (sorted) of those that files have. Files are sorted by market, so bounds tell DuckDB
 * which row groups to leave alone; only of ASCII is the order of texts the same here and there. Others between them are
 * left out here: each that no ENUM has costs more than ten that it has.
 */
export function ofMarketsSql(
  markets: readonly string[],
  parts: readonly Pick<IndexedPart, 'spans'>[],
): string {
  const wanted = new Set(markets)
  const [first, last] = [markets[0], markets.at(-1)]
  if (first === undefined || last === undefined) return 'false'
  const areBound = markets.every(isAscii)
  const isStranger = ({ market }: MarketSpan): boolean =>
    !wanted.has(market) && (!areBound || (first <= market && market <= last))
  const bounds = areBound ? `market_ticker BETWEEN ${sqlText(first)} AND ${sqlText(last)}` : 'true'
  if (!parts.some(({ spans }) => spans.some(isStranger))) return bounds
  return `${bounds} AND market_ticker IN (${markets.map(sqlText).join(',')})`
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
