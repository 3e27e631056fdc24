// Cold candles. Many markets: one DuckDB query over the files that hold some of them, sorted by it. One market: its rows
// of one file are read as a whole and remembered, since who draws a chart asks for it again.

import { type DuckDBDataChunk, DuckDBDoubleVector, type DuckDBVector } from '@duckdb/node-api'
import { CANDLE_CACHE_BYTES_MAX } from '../../shared/limits.ts'
import type { IndexedPart } from './candle-index.ts'
import { CandleRows } from './candle-rows.ts'
import { type DuckLake, readParquetSql, sqlInstant, sqlText, sqlTexts } from './duck-lake.ts'
import { lakeChunks, lakeRows } from './lake-query.ts'

// All as doubles: one kind of vector makes one fast loop.
const VALUES =
  `epoch_ms(end_period_ts)::DOUBLE AS end_ms, open::DOUBLE, high::DOUBLE, low::DOUBLE, close::DOUBLE,` +
  ` volume::DOUBLE, open_interest::DOUBLE`

/** What to read: `fromMs` inclusive, `toMs` exclusive. */
export interface ColdCandles {
  readonly parts: readonly IndexedPart[]
  /** Sorted. */
  readonly markets: readonly string[]
  readonly interval: number
  readonly fromMs: number
  readonly toMs: number
}

/** A market's last candle before some instant. */
export interface LastCandle {
  readonly market: string
  readonly endMs: number
  readonly close: number
  readonly openInterest: number
}

export class CandleLake {
  readonly #lake: DuckLake
  readonly #blocks = new Map<string, CandleRows>()
  #blockBytes = 0

  constructor(lake: DuckLake) {
    this.#lake = lake
  }

  /** Candles by (end, market); with `rowsMax` no more than that many are wanted. */
  async *read(
    wanted: ColdCandles,
    rowsMax: number | null,
    signal: AbortSignal,
  ): AsyncGenerator<CandleRows, void, void> {
    const { markets } = wanted
    if (markets.length === 0 || wanted.parts.length === 0) return
    if (markets.length === 1) {
      yield await this.#readMarket(wanted, signal)
      return
    }
    const limit = rowsMax === null ? '' : `LIMIT ${rowsMax}`
    const sql =
      `SELECT code, ${VALUES} FROM ${sourceSql(wanted)} rows JOIN ` +
      `(SELECT unnest(${sqlTexts(markets)}) AS ticker, unnest(range(0, ${markets.length}))::DOUBLE AS code) markets` +
      ` ON rows.market_ticker = markets.ticker ORDER BY end_ms, code ${limit}`
    const rows = new CandleRows(2048)
    for await (const chunk of lakeChunks(
      this.#lake,
      wanted.parts.map(({ part }) => part),
      sql,
      signal,
    )) {
      const codes = chunk.getColumnVector(0)
      if (!(codes instanceof DuckDBDoubleVector)) throw new Error('the codes of markets are not doubles')
      rows.clear()
      appendValues(rows, chunk, 1)
      for (let row = 0; row < chunk.rowCount; row++) rows.market[row] = markets[codes.getItem(row)!]!
      yield rows
    }
  }

  /** The last candle before `toMs` of each market that has one at or after `fromMs`. */
  async lastBefore(wanted: ColdCandles, signal: AbortSignal): Promise<LastCandle[]> {
    if (wanted.markets.length === 1) {
      const rows = await this.#readMarket(wanted, signal)
      const at = rows.length - 1
      if (at < 0) return []
      return [
        {
          market: rows.market[at]!,
          endMs: rows.endMs[at]!,
          close: rows.close[at]!,
          openInterest: rows.openInterest[at]!,
        },
      ]
    }
    const sql =
      `SELECT market_ticker, epoch_ms(max(end_period_ts))::DOUBLE, arg_max(close, end_period_ts),` +
      ` arg_max(open_interest, end_period_ts)::DOUBLE FROM ${sourceSql(wanted)} rows` +
      ` WHERE market_ticker IN (SELECT unnest(${sqlTexts(wanted.markets)})) GROUP BY market_ticker`
    const found = await lakeRows(
      this.#lake,
      wanted.parts.map(({ part }) => part),
      sql,
      signal,
    )
    return found.map((row) => {
      const [market, endMs, close, openInterest] = row as [string, number, number, number]
      return { market, endMs, close, openInterest }
    })
  }

  /** One market's rows of all parts, in time order. */
  async #readMarket(wanted: ColdCandles, signal: AbortSignal): Promise<CandleRows> {
    const rows = new CandleRows()
    for (const indexed of wanted.parts) {
      const block = await this.#block(indexed, wanted, signal)
      for (let at = firstAtOrAfter(block.endMs, block.length, wanted.fromMs); at < block.length; at++) {
        if (block.endMs[at]! >= wanted.toMs) break
        rows.copy(block.market[at]!, block.endMs[at]!, block, at)
      }
    }
    return rows
  }

  async #block({ part }: IndexedPart, wanted: ColdCandles, signal: AbortSignal): Promise<CandleRows> {
    const [market = ''] = wanted.markets
    const key = `${part.path} ${part.identity} ${part.toMs} ${wanted.interval} ${market}`
    let block = this.#blocks.get(key)
    if (block !== undefined) {
      this.#blocks.delete(key)
      this.#blocks.set(key, block)
      return block
    }
    const sql =
      `SELECT ${VALUES} FROM ${readParquetSql([part.path])} WHERE market_ticker = ${sqlText(market)}` +
      ` AND period_interval = ${wanted.interval} AND end_period_ts >= ${sqlInstant(part.fromMs)}` +
      ` AND end_period_ts < ${sqlInstant(part.toMs)} ORDER BY end_ms`
    block = new CandleRows()
    for await (const chunk of lakeChunks(this.#lake, [part], sql, signal)) {
      appendValues(block, chunk, 0)
      while (block.market.length < block.length) block.market.push(market)
    }
    this.#remember(key, block)
    return block
  }

  #remember(key: string, block: CandleRows): void {
    this.#blocks.set(key, block)
    this.#blockBytes += block.sizeBytes
    for (const [oldest, { sizeBytes }] of this.#blocks) {
      if (this.#blockBytes <= CANDLE_CACHE_BYTES_MAX) break
      this.#blocks.delete(oldest)
      this.#blockBytes -= sizeBytes
    }
  }
}

/** The rows of interval and span; a file that counts only in part is clipped to it. */
function sourceSql({ parts, interval, fromMs, toMs }: ColdCandles): string {
  const whole = parts.filter(({ isClipped }) => !isClipped).map(({ part }) => part.path)
  const branches = parts
    .filter(({ isClipped }) => isClipped)
    .map(({ part }) =>
      branchSql([part.path], interval, Math.max(fromMs, part.fromMs), Math.min(toMs, part.toMs)),
    )
  if (whole.length > 0) branches.unshift(branchSql(whole, interval, fromMs, toMs))
  return `(${branches.join(' UNION ALL ')})`
}

function branchSql(paths: readonly string[], interval: number, fromMs: number, toMs: number): string {
  return (
    `SELECT market_ticker, end_period_ts, open, high, low, close, volume, open_interest FROM ${readParquetSql(paths)}` +
    ` WHERE period_interval = ${interval} AND end_period_ts >= ${sqlInstant(fromMs)} AND end_period_ts < ${sqlInstant(toMs)}`
  )
}

/** Appends a chunk whose columns from `firstColumn` on are VALUES; the markets are the caller's to set. */
function appendValues(rows: CandleRows, chunk: DuckDBDataChunk, firstColumn: number): void {
  const { rowCount } = chunk
  const start = rows.reserve(rowCount)
  const targets = [rows.endMs, rows.open, rows.high, rows.low, rows.close, rows.volume, rows.openInterest]
  for (const [column, target] of targets.entries()) {
    copyDoubles(chunk.getColumnVector(firstColumn + column), target, start, rowCount)
  }
  rows.filled.fill(0, start, start + rowCount)
}

function copyDoubles(vector: DuckDBVector, target: Float64Array, start: number, count: number): void {
  if (!(vector instanceof DuckDBDoubleVector)) throw new Error('a column is not of doubles')
  // The index lets no file with a null pass.
  for (let row = 0; row < count; row++) target[start + row] = vector.getItem(row)!
}

function firstAtOrAfter(ends: Float64Array, length: number, instantMs: number): number {
  let low = 0
  let high = length
  while (low < high) {
    const middle = (low + high) >> 1
    if (ends[middle]! < instantMs) low = middle + 1
    else high = middle
  }
  return low
}
