// A cache of candles: each block has the rows of one market in one file, in time order. Charts and tables of a day request
// the same few markets repeatedly, and then others of the same event. A DuckDB query takes milliseconds even for a few rows,
// most of it to read the row group. The markets of an event share a row group, so one query fetches all of them.

import { BoundedMap } from '../../shared/bounded-map.ts'
import type { MarketSpan } from '../../shared/candle-spans.ts'
import { CANDLE_CACHE_BYTES_MAX } from '../../shared/limits.ts'
import type { IndexedPart } from './candle-index.ts'
import { CandleRows } from './candle-rows.ts'
import { appendCandles, codedCandlesSql, ofMarketsSql } from './candle-values.ts'
import { type DuckLake, readParquetSql, sqlInstant } from './duck-lake.ts'
import { heldLakeChunks } from './lake-query.ts'

/** The other markets of an event are fetched too if the event has at most this many rows. */
const EVENT_ROWS_MAX = 40_960

export class CandleBlocks {
  readonly #lake: DuckLake
  readonly #blocks = new BoundedMap<CandleRows>(CANDLE_CACHE_BYTES_MAX)

  constructor(lake: DuckLake) {
    this.#lake = lake
  }

  /** The rows of each of `markets` (sorted) in one part, in the order of the markets. Markets without rows are left out. */
  async of(
    part: IndexedPart,
    markets: readonly string[],
    interval: number,
    signal: AbortSignal,
  ): Promise<CandleRows[]> {
    const { spans } = part
    const keyOf = (market: string): string =>
      `${part.path} ${part.identity} ${part.toMs} ${interval} ${market}`
    const there = new Set(spans.filter((span) => span.interval === interval).map(({ market }) => market))
    const inPart = markets.filter((market) => there.has(market))
    const missing = inPart.filter((market) => this.#blocks.get(keyOf(market)) === undefined)
    const wanted = missing.length === 0 ? [] : withTheirEvents(missing, spans, interval)
    const fresh = await this.#read(part, wanted, interval, signal)
    for (const [market, block] of fresh) this.#blocks.set(keyOf(market), block, block.sizeBytes)
    const blocks = inPart.map((market) => {
      const key = keyOf(market)
      this.#blocks.renew(key)
      // Another request may have added or evicted it meanwhile.
      return fresh.get(market) ?? this.#blocks.get(key)
    })
    if (!blocks.includes(undefined)) return blocks as CandleRows[]
    return [...(await this.#read(part, inPart, interval, signal)).values()]
  }

  async #read(
    part: IndexedPart,
    markets: readonly string[],
    interval: number,
    signal: AbortSignal,
  ): Promise<Map<string, CandleRows>> {
    const blocks = new Map(markets.map((market) => [market, new CandleRows()]))
    if (markets.length === 0) return blocks
    const source =
      `(SELECT * FROM ${readParquetSql([part.path])} WHERE period_interval = ${interval}` +
      ` AND ${ofMarketsSql(markets, [part])}` +
      ` AND end_period_ts >= ${sqlInstant(part.fromMs)} AND end_period_ts < ${sqlInstant(part.toMs)})`
    const rows = new CandleRows(2048)
    // Without ORDER BY, which would be a quarter of the query's time: the rows of a file are usually sorted.
    const sql = codedCandlesSql(source, markets)
    for (const chunk of await heldLakeChunks(this.#lake, [part], sql, signal)) {
      rows.clear()
      appendCandles(rows, chunk, markets)
      for (let from = 0, to = 0; from < rows.length; from = to) {
        const market = rows.market[from]!
        while (to < rows.length && rows.market[to] === market) to++
        blocks.get(market)!.copyAll(rows, from, to)
      }
    }
    for (const [market, block] of blocks) blocks.set(market, sortedByEnd(block))
    return blocks
  }
}

/** `markets` (sorted) and the other markets of their events, if all of these have few rows together. */
function withTheirEvents(
  markets: readonly string[],
  spans: readonly MarketSpan[],
  interval: number,
): readonly string[] {
  const asked = new Set(markets)
  const events = new Set(spans.filter(({ market }) => asked.has(market)).map(({ event }) => event))
  const ofEvents = spans.filter((span) => span.interval === interval && events.has(span.event))
  const rows = ofEvents.reduce((sum, span) => sum + span.rows, 0)
  if (rows > EVENT_ROWS_MAX) return markets
  return ofEvents.map(({ market }) => market).toSorted()
}

/** One market's rows sorted by end; the same set if they are already sorted. */
function sortedByEnd(block: CandleRows): CandleRows {
  const ends = block.endMs.subarray(0, block.length)
  if (ends.every((endMs, row) => row === 0 || ends[row - 1]! <= endMs)) return block
  const sorted = new CandleRows(block.length)
  const order = [...ends.keys()].toSorted((left, right) => ends[left]! - ends[right]!)
  for (const row of order) sorted.copy(block, row)
  return sorted
}
