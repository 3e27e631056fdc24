// Cold candles: rows of the lake. Few rows come from cached blocks (candle-blocks.ts), many from one sorted DuckDB query over
// all files that hold some of them.

import type { MarketSpan } from '../../shared/candle-spans.ts'
import { firstAtOrAfter, mergeBlocks } from './candle-block-merge.ts'
import { CandleBlocks } from './candle-blocks.ts'
import type { IndexedPart } from './candle-index.ts'
import { CandleRows } from './candle-rows.ts'
import { appendCandles, codedCandlesSql, ofMarketsSql } from './candle-values.ts'
import { type DuckLake, readParquetSql, sqlInstant, sqlTexts } from './duck-lake.ts'
import { heldLakeChunks, lakeChunks, lakeRows } from './lake-query.ts'

/** If the files have at most this many candles of the requested markets, they are read by blocks, which are cached. */
const CANDLE_BLOCK_ROWS_MAX = 131_072
/** A query result of at most this many candles (44 bytes each) is held in memory instead of fetched chunk by chunk. */
const HELD_ROWS_MAX = 600_000

/** What to read: `fromMs` inclusive, `toMs` exclusive. */
export interface ColdCandles {
  readonly parts: readonly IndexedPart[]
  /** Sorted. */
  readonly markets: readonly string[]
  readonly interval: number
  readonly fromMs: number
  readonly toMs: number
  /** Only rows after this place. */
  readonly after?: CandlePlace | undefined
}

/** A place in the answer's order. */
export interface CandlePlace {
  readonly endMs: number
  readonly market: string
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
  readonly #blocks: CandleBlocks

  constructor(lake: DuckLake) {
    this.#lake = lake
    this.#blocks = new CandleBlocks(lake)
  }

  /** Yields candles by (end, market). With `rowsMax` the caller needs at most that many. */
  async *read(
    wanted: ColdCandles,
    rowsMax: number | null,
    signal: AbortSignal,
  ): AsyncGenerator<CandleRows, void, void> {
    const { markets, fromMs, toMs } = wanted
    if (markets.length === 0 || wanted.parts.length === 0) return
    if (wanted.after === undefined && isSmall(wanted)) {
      const blocks = await this.#blocksOf(wanted, signal)
      yield mergeBlocks(blocks, { fromMs, toMs, rowsMax: rowsMax ?? Infinity })
      return
    }
    const limit = rowsMax === null ? '' : ` LIMIT ${rowsMax}`
    const sql = codedCandlesSql(sourceSql(wanted), markets, {
      order: `end_ms, market${limit}`,
      where: behindSql(wanted),
    })
    const rows = new CandleRows(2048)
    const { parts } = wanted
    const isHeld = rowsMax !== null && rowsMax <= HELD_ROWS_MAX
    const read = isHeld
      ? await heldLakeChunks(this.#lake, parts, sql, signal)
      : lakeChunks(this.#lake, parts, sql, signal)
    for await (const chunk of read) {
      rows.clear()
      appendCandles(rows, chunk, markets)
      yield rows
    }
  }

  /** The last candle before `toMs` of each market that has one at or after `fromMs`. */
  async lastBefore(wanted: ColdCandles, signal: AbortSignal): Promise<LastCandle[]> {
    if (isSmall(wanted)) return lastOfBlocks(await this.#blocksOf(wanted, signal), wanted)
    const sql =
      `SELECT market_ticker, epoch_ms(max(end_period_ts))::DOUBLE, arg_max(close, end_period_ts),` +
      ` arg_max(open_interest, end_period_ts)::DOUBLE FROM ${sourceSql(wanted)} rows` +
      ` WHERE market_ticker IN (SELECT unnest(${sqlTexts(wanted.markets)})) GROUP BY market_ticker`
    const found = await lakeRows(this.#lake, wanted.parts, sql, signal)
    return found.map((row) => {
      const [market, endMs, close, openInterest] = row as [string, number, number, number]
      return { market, endMs, close, openInterest }
    })
  }

  async count(wanted: ColdCandles, signal: AbortSignal): Promise<number> {
    const { parts, interval, fromMs, toMs } = wanted
    const markets = new Set(wanted.markets)
    const spans = parts
      .flatMap((part) => part.spans)
      .filter((span) => span.interval === interval && markets.has(span.market))
    const isWhole = (span: MarketSpan): boolean => span.firstMs >= fromMs && span.lastMs < toMs
    // The index has the rows of markets that lie wholly in the span; the rows of the others are counted.
    const cut = new Set(spans.filter((span) => !isWhole(span)).map(({ market }) => market))
    const known = spans.filter(({ market }) => !cut.has(market)).reduce((sum, { rows }) => sum + rows, 0)
    if (cut.size === 0) return known
    const cutMarkets = wanted.markets.filter((market) => cut.has(market))
    const sql =
      `SELECT count(*)::DOUBLE FROM ${sourceSql({ ...wanted, markets: cutMarkets })} rows` +
      ` WHERE market_ticker IN (SELECT unnest(${sqlTexts(cutMarkets)}))`
    const [row] = await lakeRows(this.#lake, parts, sql, signal)
    return known + Number(row?.[0] ?? 0)
  }

  async #blocksOf({ parts, markets, interval }: ColdCandles, signal: AbortSignal): Promise<CandleRows[]> {
    const blocks: CandleRows[] = []
    for (const part of parts) blocks.push(...(await this.#blocks.of(part, markets, interval, signal)))
    return blocks
  }
}

/** Whether all rows of the markets, including those outside the span, are few enough to be cached. */
function isSmall({ parts, markets, interval }: ColdCandles): boolean {
  const wanted = new Set(markets)
  let rows = 0
  for (const { spans } of parts) {
    for (const span of spans) if (span.interval === interval && wanted.has(span.market)) rows += span.rows
  }
  return rows <= CANDLE_BLOCK_ROWS_MAX
}

function lastOfBlocks(blocks: readonly CandleRows[], { fromMs, toMs }: ColdCandles): LastCandle[] {
  const last = new Map<string, LastCandle>()
  for (const block of blocks) {
    const at = firstAtOrAfter(block, toMs) - 1
    const endMs = block.endMs[at]
    if (at < 0 || endMs === undefined || endMs < fromMs) continue
    const market = block.market[at]!
    if (endMs > (last.get(market)?.endMs ?? -Infinity))
      last.set(market, { market, endMs, close: block.close[at]!, openInterest: block.openInterest[at]! })
  }
  return [...last.values()]
}

function behindSql({ after, markets }: ColdCandles): string {
  if (after === undefined) return 'true'
  const codesMax = markets.filter((market) => market <= after.market).length
  return `end_ms > ${after.endMs} OR (end_ms = ${after.endMs} AND enum_code(market) >= ${codesMax})`
}

/** The rows of the interval in the span. A file that lies only partly in its part is clipped to it. */
function sourceSql({ parts, markets, interval, fromMs, toMs }: ColdCandles): string {
  const bounds = ofMarketsSql(markets, parts)
  const branchSql = (paths: readonly string[], from: number, to: number): string =>
    `SELECT market_ticker, end_period_ts, open, high, low, close, volume, open_interest FROM ${readParquetSql(paths)}` +
    ` WHERE period_interval = ${interval} AND end_period_ts >= ${sqlInstant(from)}` +
    ` AND end_period_ts < ${sqlInstant(to)} AND ${bounds}`
  const whole = parts.filter(({ isClipped }) => !isClipped).map(({ path }) => path)
  const branches = parts
    .filter(({ isClipped }) => isClipped)
    .map((part) => branchSql([part.path], Math.max(fromMs, part.fromMs), Math.min(toMs, part.toMs)))
  if (whole.length > 0) branches.unshift(branchSql(whole, fromMs, toMs))
  return `(${branches.join(' UNION ALL ')})`
}
