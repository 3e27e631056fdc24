// The columns of a DuckDB query for candles, and how they are copied into CandleRows.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import type { DuckDBDataChunk } from '@duckdb/node-api'
import type { IndexedPart } from './candle-index.ts'
import type { CandleRows } from './candle-rows.ts'
import { sqlText } from './duck-lake.ts'
import { copyNumbers } from './duck-vectors.ts'

/** The values of a candle in their stored types, which keeps the rows that DuckDB sorts narrow. */
const VALUES = 'open, high, low, close, volume, open_interest'

/**
 * Selects the candles of `markets` (sorted, at least one) for `appendCandles`, in any order unless `order` is given. Each market
 * becomes a value of an ENUM, its position in the list: faster than a join, and sorted without comparing texts.
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
 * The condition that selects `markets` (sorted). Files are sorted by market, so DuckDB skips row groups outside the bounds. Only
 * ASCII names get bounds, since they sort alike in JavaScript and DuckDB. If files have other markets within the bounds, an IN
 * list excludes them: a market that the ENUM lacks costs more than ten that it has.
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
    // There are no nulls: the index refuses files that have one.
    copyNumbers(chunk.getColumnVector(1 + column), target, start)
  }
  rows.filled.fill(0, start, start + rowCount)
  const codes = new Float64Array(rowCount)
  copyNumbers(chunk.getColumnVector(0), codes, 0)
  for (let row = 0; row < rowCount; row++) rows.market[start + row] = markets[codes[row]!]!
}
