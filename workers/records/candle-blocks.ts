// Remembered candles: the rows of one market in one file, in time order. Who draws a chart or a table of a day asks for
// the same few markets again and again, and then for others of their event. A query costs DuckDB milliseconds however
// little it finds, most of them for the row group in which those lie beside each other: so they are all fetched at once.

import { BoundedMap } from '../../shared/bounded-map.ts'
import type { MarketSpan } from '../../shared/candle-spans.ts'
import { CANDLE_CACHE_BYTES_MAX } from '../../shared/limits.ts'
import type { IndexedPart } from './candle-index.ts'
import { CandleRows } from './candle-rows.ts'
import { appendCandles, codedCandlesSql, ofMarketsSql } from './candle-values.ts'
import { type DuckLake, readParquetSql, sqlInstant } from './duck-lake.ts'
import { heldLakeChunks } from './lake-query.ts'

/** Rows up to which the other markets of an event are fetched with those that are asked for. */
const EVENT_ROWS_MAX = 40_960

export class CandleBlocks {
  readonly #lake: DuckLake
  readonly #blocks = new BoundedMap<CandleRows>(CANDLE_CACHE_BYTES_MAX)

  constructor(lake: DuckLake) {
    this.#lake = lake
  }

  /** The rows of each of some markets (sorted) in one part, in the order of the markets; a market may have none. */
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
      // Another request may have put it there, or made this one forget it, in the meantime.
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
    // Sorting takes DuckDB a quarter of the time, and the rows lie sorted in the file as a rule.
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

/** Some markets (sorted) and the others of their events, if these have few rows together. */
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

/** One market's rows in the order of their ends; the same set where they have it already. */
function sortedByEnd(block: CandleRows): CandleRows {
  const ends = block.endMs.subarray(0, block.length)
  if (ends.every((endMs, row) => row === 0 || ends[row - 1]! <= endMs)) return block
  const sorted = new CandleRows(block.length)
  const order = [...ends.keys()].toSorted((left, right) => ends[left]! - ends[right]!)
  for (const row of order) sorted.copy(block.market[row]!, ends[row]!, block, row)
  return sorted
}
