// The peer that uses a database: one DuckDB query from the lake file to ndjson, in three forms. `asof` is SQL's form of "as of time
// T": an ASOF join of every tick with every price level. `spans` avoids the join: it computes which ticks see a quantity. `tuned`
// does so too, but stores a level as one integer and sorts lists of them, which halves the work. All rely on benchmark files: whole
// cents and contracts, no gaps, known from the date's first nanosecond.

import { readFile } from 'node:fs/promises'
import { DuckDBInstance } from '@duckdb/node-api'
import { MS_PER_DAY, NS_PER_MS } from '../shared/utc-date.ts'
import type { PeerOptions } from './tardis-peer.ts'

export const DUCKDB_FORMS = ['asof', 'spans', 'tuned'] as const
export type DuckDbForm = (typeof DUCKDB_FORMS)[number]

/** Writes the rows of the day to `outPath` as ndjson. The text differs from JSON.stringify's: `60.0` for `60`. */
export async function runDuckDbPeer(form: DuckDbForm, options: PeerOptions, outPath: string): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:')
  try {
    const connection = await instance.connect()
    await connection.run(`COPY (${snapshotQuery(form, options)}) TO '${quoted(outPath)}' (FORMAT json)`)
    connection.closeSync()
  } finally {
    instance.closeSync()
  }
}

/** Calls `onRow` with each row of the written file, in JSON.stringify's form. */
export async function readDuckDbRows(outPath: string, onRow: (json: string) => void): Promise<void> {
  const lines = (await readFile(outPath, 'utf8')).split('\n')
  for (const line of lines) if (line !== '') onRow(JSON.stringify(JSON.parse(line)))
}

function quoted(text: string): string {
  return text.replaceAll("'", "''")
}

/** Bits of a level's integer that hold its quantity. */
const QTY_BITS = 40

const sidesOfCells = (levels: number): string => `
    sides AS (
      SELECT tick, market_id,
        max_by({price: price, qty: qty}, price, ${levels}) FILTER (side = 0) AS bids,
        min_by({price: price, qty: qty}, price, ${levels}) FILTER (side = 1) AS asks
      FROM cells GROUP BY tick, market_id
    )`

// The best levels of each side of each market and tick. Input: `at_tick` has a level's quantity at the ticks where it changes,
// `spans` has a level's quantity and the ticks that see it.
const SIDES: Readonly<Record<DuckDbForm, (levels: number) => string>> = {
  asof: (levels) => `
    grid AS (
      SELECT market_id, book, side, price, unnest(range(since_tick, until_tick)) AS tick
      FROM (SELECT DISTINCT market_id, book, side, price FROM at_tick) JOIN books USING (market_id, book)
    ), cells AS (
      SELECT grid.tick, grid.market_id, grid.side, grid.price // 100 AS price, qty // 1000000 AS qty
      FROM grid ASOF JOIN at_tick ON grid.market_id = at_tick.market_id AND grid.book = at_tick.book
        AND grid.side = at_tick.side AND grid.price = at_tick.price AND grid.tick >= at_tick.tick
      WHERE qty >= 1000000
    ), ${sidesOfCells(levels)}`,
  spans: (levels) => `
    cells AS (
      SELECT market_id, side, price // 100 AS price, qty // 1000000 AS qty, unnest(range(tick, until_tick)) AS tick
      FROM spans WHERE qty >= 1000000 AND tick < until_tick
    ), ${sidesOfCells(levels)}`,
  tuned: (levels) => `
    packed AS (
      SELECT market_id, side, tick, until_tick,
        (CASE side WHEN 0 THEN -1 ELSE 1 END) * ((price // 100)::BIGINT * (1::BIGINT << ${QTY_BITS}) + qty // 1000000) AS level
      FROM spans WHERE qty >= 1000000 AND tick < until_tick
    ), cells AS (
      SELECT market_id, side, level, unnest(range(tick, until_tick)) AS tick FROM packed
    ), lists AS (
      SELECT tick, market_id, side, list(level) AS levels FROM cells GROUP BY tick, market_id, side
    ), tops AS (
      SELECT tick, market_id, side,
        list_transform(list_sort(levels)[:${levels}],
          lambda level: {price: abs(level) >> ${QTY_BITS}, qty: abs(level) & ((1::BIGINT << ${QTY_BITS}) - 1)}) AS levels
      FROM lists
    ), sides AS (
      SELECT tick, market_id, any_value(levels) FILTER (side = 0) AS bids, any_value(levels) FILTER (side = 1) AS asks
      FROM tops GROUP BY tick, market_id
    )`,
}

/**
 * `book` numbers the intervals between two clears of a market. Within one, a level's quantity is the sum of its events (a `set`
 * directly follows its `clear`). The ticks from an event to the next one on its level see its quantity.
 */
function snapshotQuery(form: DuckDbForm, { path, dateStartMs, intervalS, levels }: PeerOptions): string {
  const start = BigInt(dateStartMs) * NS_PER_MS
  const end = start + BigInt(MS_PER_DAY) * NS_PER_MS
  const interval = BigInt(intervalS) * 1_000_000_000n
  const firstTick = (ts: string) => `((${ts} - ${start} + ${interval - 1n}) // ${interval})`
  return `
    WITH events AS (
      SELECT file_row_number AS n, ts, market_id, event, side, price, qty,
        sum((event = 0)::INT) OVER (PARTITION BY market_id ORDER BY file_row_number) AS book
      FROM read_parquet('${quoted(path)}', file_row_number = true)
    ), books AS (
      SELECT market_id, book, ${firstTick('since')} AS since_tick, ${firstTick('until')} AS until_tick
      FROM (
        SELECT market_id, book, min(ts) AS since,
          coalesce(lead(min(ts)) OVER (PARTITION BY market_id ORDER BY book), ${end}) AS until
        FROM events GROUP BY market_id, book
      )
    ), amounts AS (
      SELECT n, ts, market_id, book, side, price,
        sum(qty) OVER (PARTITION BY market_id, book, side, price ORDER BY n) AS qty
      FROM events WHERE event IN (1, 2)
    ), at_tick AS (
      SELECT market_id, book, side, price, ${firstTick('ts')} AS tick, arg_max(qty, n) AS qty
      FROM amounts GROUP BY ALL
    ), spans AS (
      SELECT market_id, side, price, qty, tick,
        coalesce(lead(tick) OVER (PARTITION BY market_id, book, side, price ORDER BY tick), books.until_tick) AS until_tick
      FROM at_tick JOIN books USING (market_id, book)
    ), ${SIDES[form](levels)}, ticks AS (
      SELECT DISTINCT market_id, unnest(range(since_tick, until_tick)) AS tick FROM books
    )
    SELECT ${start} + tick * ${interval} AS ts, market_id,
      coalesce(bids[1].price, 0) AS best_bid, coalesce(asks[1].price, 0) AS best_ask,
      CASE WHEN len(bids) > 0 AND len(asks) > 0 THEN greatest(best_ask - best_bid, 0) ELSE -1 END AS spread,
      CASE WHEN len(bids) > 0 AND len(asks) > 0 THEN (best_bid + best_ask) / 2 ELSE 0 END AS mid,
      coalesce(bids, []) AS bids, coalesce(asks, []) AS asks
    FROM ticks LEFT JOIN sides USING (tick, market_id)
    ORDER BY ts, market_id`
}
